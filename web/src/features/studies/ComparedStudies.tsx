import { t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { AddStudy } from "./AddStudy";
import { MOST_COMPARED } from "./api";
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
