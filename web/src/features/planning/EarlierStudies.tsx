import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState, type MouseEvent } from "react";
import { AddButton, Finder } from "@/components/Finder";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import type { Plan } from "@/lib/api/client";
import { textOf } from "@/lib/values";
import { earlierQuery } from "./api";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";

interface Props {
  draft: Draft;
  plan: Plan | undefined;
}

/** Choose earlier studies of the same component, whose best configurations are measured first. */
export function EarlierStudies({ draft, plan }: Props) {
  const { start_from: value } = draft.file;
  const isList = Array.isArray(value);
  // If the file has a single name in place of a list, the service reports the error.
  const chosen: string[] = isList ? value.map(textOf) : value === undefined || value === null ? [] : [textOf(value)];
  function add(name: string) {
    if (isList) draft.set(["start_from", value.length], name);
    else draft.set(["start_from"], [...chosen, name]);
  }
  function remove(place: number, { currentTarget }: MouseEvent) {
    // The button of the last study disappears with it, so the focus moves. Any other button then belongs to the next study.
    if (place === chosen.length - 1) currentTarget.closest("li")?.nextElementSibling?.querySelector("button")?.focus();
    draft.set(isList ? ["start_from", place] : ["start_from"], undefined);
  }
  return (
    <Card title={t`Start from earlier studies`}>
      <div className={styles.stack}>
        <p className={styles.soft}>
          {t`Up to five of their best configurations are measured first, after the default. Their results are not copied, since they were measured under other conditions.`}
        </p>
        <ul className={styles.agents}>
          {chosen.map((name, place) => (
            // The file may name the same study twice.
            <li key={place}>
              <b>{name}</b>{" "}
              <Button small kind="quiet" aria-label={t`Remove ${name}`} onClick={(event) => remove(place, event)}>
                {t`Remove`}
              </Button>{" "}
              {/* Last, so that the button stays where it is when the plan comes. */}
              <span className={styles.soft}>{given(name, plan)}</span>
            </li>
          ))}
          <li>
            <AddButton text={t`Add an earlier study …`} label={t`Add an earlier study`} onAdd={add}>
              {(choose) => <Choice component={textOf(draft.file.component)} chosen={chosen} onAdd={choose} />}
            </AddButton>
          </li>
        </ul>
        <FaultAt at="start_from">{(error) => (error === undefined ? null : <p className={styles.error}>{error}</p>)}</FaultAt>
      </div>
    </Card>
  );
}

interface ChoiceProps {
  component: string;
  /** Studies that are not offered. */
  chosen: readonly string[];
  onAdd: (name: string) => void;
}

function Choice({ component, chosen, onAdd }: ChoiceProps) {
  const [text, setText] = useState("");
  const { data: known, error } = useQuery(earlierQuery(component));
  const offered = (known ?? []).filter(({ name }) => !chosen.includes(name));
  const none = offered.length > 0 ? t`No matching studies.` : chosen.length > 0 ? t`No other studies` : t`No study has a result yet`;
  return (
    <Finder
      label={t`Find an earlier study`}
      placeholder={t`Find an earlier study …`}
      list={t`Earlier studies`}
      text={text}
      onText={setText}
      offers={offered
        .filter(({ name }) => name.toLowerCase().includes(text.trim().toLowerCase()))
        .map(({ name, finished_count }) => ({ name, about: plural(finished_count, { one: "# trial", other: "# trials" }) }))}
      none={known === undefined ? null : none}
      error={known === undefined ? error : null}
      onChoose={onAdd}
    />
  );
}

/** Return how many configurations the plan takes from a study. */
function given(name: string, plan: Plan | undefined): string {
  const found = plan?.started_from.find(({ study }) => study === name);
  if (found === undefined) return "";
  const taken = plural(found.taken, { one: "# configuration", other: "# configurations" });
  return found.passed_over === 0 ? taken : t`${taken}, ${found.passed_over} outside of this space`;
}
