import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { SelectField } from "@/components/Field";
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

/** Earlier studies of the same component, whose best configurations are measured first. */
export function EarlierStudies({ draft, plan }: Props) {
  const { data: known = [] } = useQuery(earlierQuery(textOf(draft.file.component)));
  const { start_from: value } = draft.file;
  const chosen = Array.isArray(value) ? value.map(textOf) : [];
  const offered = known.filter(({ name }) => !chosen.includes(name));
  const write = (next: string[]) => draft.set(["start_from"], next.length === 0 ? undefined : next);
  return (
    <Card title={t`Start from earlier studies`}>
      <div className={styles.stack}>
        <p className={styles.soft}>
          {t`Up to five of their best configurations are measured first, after the default. Their results are not copied: they were measured under other conditions.`}
        </p>
        {chosen.length === 0 ? null : (
          <ul className={styles.agents}>
            {chosen.map((name) => (
              <li key={name}>
                <b>{name}</b> <span className={styles.soft}>{given(name, plan)}</span>{" "}
                <Button small kind="quiet" aria-label={t`Remove ${name}`} onClick={() => write(chosen.filter((one) => one !== name))}>
                  {t`Remove`}
                </Button>
              </li>
            ))}
          </ul>
        )}
        <FaultAt at="start_from">
          {(error) => (
            <SelectField
              label={t`Add an earlier study`}
              value=""
              error={error}
              disabled={offered.length === 0}
              onChange={(event) => write([...chosen, event.target.value])}
            >
              <option value="">{offered.length > 0 ? t`Choose …` : chosen.length > 0 ? t`There is no other` : t`None has a result yet`}</option>
              {offered.map(({ name, finished_count }) => (
                <option key={name} value={name}>
                  {plural(finished_count, { one: `${name} (# trial)`, other: `${name} (# trials)` })}
                </option>
              ))}
            </SelectField>
          )}
        </FaultAt>
      </div>
    </Card>
  );
}

/** What a study gives, as the plan says. */
function given(name: string, plan: Plan | undefined): string {
  const found = plan?.started_from.find(({ study }) => study === name);
  if (found === undefined) return "";
  const taken = plural(found.taken, { one: "# configuration", other: "# configurations" });
  return found.passed_over === 0 ? taken : t`${taken}, ${found.passed_over} outside of this space`;
}
