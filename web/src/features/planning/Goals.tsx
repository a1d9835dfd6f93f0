import { t } from "@lingui/core/macro";
import { useId } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { CheckField, SelectField, TextField } from "@/components/Field";
import { FaultAt } from "./FaultAt";
import { Lines } from "./Fields";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { textOf } from "@/lib/values";

/** The objectives, the noise and the outcome constraints of a study. */
export function Goals({ draft, metrics }: { draft: Draft; metrics: readonly string[] }) {
  const id = useId();
  const value = draft.file.objectives;
  const objectives = Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
  const write = (next: Record<string, unknown>[]) => draft.set(["objectives"], next);
  return (
    <Card title={t`Objectives`}>
      <div className={styles.stack}>
        <datalist id={id}>
          {metrics.map((metric) => (
            <option key={metric} value={metric} />
          ))}
        </datalist>
        {objectives.map((objective, index) => {
          const goal = "maximize" in objective ? "maximize" : "minimize";
          const metric = textOf(objective[goal]);
          const unit = textOf(objective.unit);
          const change = (next: { goal?: string; metric?: string; unit?: string }) => {
            const made = { [next.goal ?? goal]: next.metric ?? metric, ...((next.unit ?? unit) === "" ? {} : { unit: next.unit ?? unit }) };
            write(objectives.map((one, place) => (place === index ? made : one)));
          };
          return (
            <div key={index} className={styles.row} role="group" aria-label={t`Objective ${index + 1}`}>
              <FaultAt at={`objectives[${index}]`}>
                {(error) => (
                  <TextField label={t`Metric`} list={id} value={metric} error={error} onChange={(event) => change({ metric: event.target.value })} />
                )}
              </FaultAt>
              <SelectField label={t`Goal`} value={goal} onChange={(event) => change({ goal: event.target.value })}>
                <option value="minimize">{t`minimize`}</option>
                <option value="maximize">{t`maximize`}</option>
              </SelectField>
              <TextField label={t`Unit`} size={8} value={unit} onChange={(event) => change({ unit: event.target.value })} />
              {objectives.length > 1 ? (
                <Button small kind="quiet" aria-label={t`Remove objective ${index + 1}`} onClick={() => write(objectives.filter((_, place) => place !== index))}>
                  {t`Remove`}
                </Button>
              ) : null}
            </div>
          );
        })}
        <FaultAt just={["objectives"]}>{(error) => (error === undefined ? null : <p className={styles.error}>{error}</p>)}</FaultAt>
        <div>
          <Button small onClick={() => write([...objectives, { minimize: metrics.find((metric) => !objectives.some((one) => Object.values(one).includes(metric))) ?? "" }])}>
            {t`Add an objective`}
          </Button>
        </div>
        {objectives.length > 1 ? <p className={styles.soft}>{t`With several objectives, the result is a Pareto set: no configuration is best in every objective.`}</p> : null}
        <CheckField
          label={t`Measurements vary from run to run`}
          hint={t`If selected, a configuration may be measured several times, so that a single lucky run does not decide.`}
          checked={draft.file.noisy !== false}
          onChange={(event) => draft.set(["noisy"], event.target.checked ? undefined : false)}
        />
        <Lines
          title={t`Outcome constraints`}
          what={t`outcome constraint`}
          hint={t`A condition that results must meet, such as memory_mb <= 4096.`}
          placeholder={t`memory_mb <= 4096`}
          field="outcome_constraints"
          draft={draft}
        />
      </div>
    </Card>
  );
}
