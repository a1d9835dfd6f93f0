import { t } from "@lingui/core/macro";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { stateText } from "@/components/Badge";
import { Button } from "@/components/Button";
import { AddButton, Finder } from "@/components/Finder";
import { useThrottled } from "@/lib/clock";
import { MOST_COMPARED, studiesQuery } from "./api";
import styles from "./ComparedStudies.module.css";

interface Props {
  studies: readonly string[];
  /** The studies that do not exist. */
  missing: readonly string[];
  onChange: (studies: string[]) => void;
}

/** The compared studies. Each can be removed, and others can be added. */
export function ComparedStudies({ studies, missing, onChange }: Props) {
  function remove(name: string, item: Element | null) {
    // The button disappears with its study, so the focus moves to the neighbour.
    const neighbours = [item?.nextElementSibling, item?.previousElementSibling].map((one) => one?.querySelector("button"));
    neighbours.find((button) => button)?.focus();
    onChange(studies.filter((one) => one !== name));
  }
  return (
    <ul className={styles.studies} aria-label={t`Compared studies`}>
      {studies.map((name) => (
        <li key={name} className={`${styles.study} ${missing.includes(name) ? styles.missing : ""}`}>
          <span>
            <b>{name}</b> {missing.includes(name) ? t`This study does not exist.` : null}
          </span>
          <Button small kind="quiet" aria-label={t`Remove ${name}`} title={t`Remove ${name}`} onClick={(event) => remove(name, event.currentTarget.closest("li"))}>
            <span aria-hidden="true">×</span>
          </Button>
        </li>
      ))}
      <li>
        {studies.length < MOST_COMPARED ? (
          <AddStudy chosen={studies} onAdd={(name) => onChange([...studies, name])} />
        ) : (
          <span className={styles.soft}>{t`At most ${MOST_COMPARED} studies can be compared.`}</span>
        )}
      </li>
    </ul>
  );
}

const SHOWN = 8;

interface AddStudyProps {
  /** Studies that are not offered. */
  chosen: readonly string[];
  onAdd: (name: string) => void;
}

/** A button that opens a search for a study. */
function AddStudy({ chosen, onAdd }: AddStudyProps) {
  return (
    <AddButton text={t`Add a study …`} label={t`Add a study`} onAdd={onAdd}>
      {(add) => <Choice chosen={chosen} onAdd={add} />}
    </AddButton>
  );
}

function Choice({ chosen, onAdd }: AddStudyProps) {
  const [text, setText] = useState("");
  const search = useThrottled(text.trim(), 200);
  const { data, error } = useInfiniteQuery({ ...studiesQuery({ search, sort: "-updated" }, SHOWN + chosen.length), refetchInterval: false });
  const found = data?.pages[0]?.studies.filter(({ name }) => !chosen.includes(name)).slice(0, SHOWN) ?? [];
  return (
    <Finder
      label={t`Find a study`}
      placeholder={t`Find a study …`}
      list={t`Matching studies`}
      text={text}
      onText={setText}
      offers={found.map(({ name, state }) => ({ name, about: stateText(state) }))}
      none={data === undefined ? null : t`No matching studies.`}
      error={error}
      onChoose={onAdd}
    />
  );
}
