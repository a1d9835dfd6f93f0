import { useId } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { CheckField, SelectField, TextField } from "@/components/Field";
import { messageFor, type Fault } from "./faults";
import { Lines } from "./Lines";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { textOf } from "./values";

/** What is to become better, and what must not become worse. */
export function Goals({ draft, metrics, fault }: { draft: Draft; metrics: readonly string[]; fault: Fault | null }) {
  const id = useId();
  const value = draft.file.objectives;
  const objectives = Array.isArray(value) ? (value as Record<string, unknown>[]) : [];
  const write = (next: Record<string, unknown>[]) => draft.set(["objectives"], next);
  return (
    <Card title="Objectives">
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
            <div key={index} className={styles.row} role="group" aria-label={`Objective ${index + 1}`}>
              <TextField label="Metric" list={id} value={metric} error={messageFor(fault, `objectives[${index}]`)} onChange={(event) => change({ metric: event.target.value })} />
              <SelectField label="Better is" value={goal} onChange={(event) => change({ goal: event.target.value })}>
                <option value="minimize">less</option>
                <option value="maximize">more</option>
              </SelectField>
              <TextField label="Unit" size={8} value={unit} onChange={(event) => change({ unit: event.target.value })} />
              {objectives.length > 1 ? (
                <Button small kind="quiet" aria-label={`Remove objective ${index + 1}`} onClick={() => write(objectives.filter((_, place) => place !== index))}>
                  Remove
                </Button>
              ) : null}
            </div>
          );
        })}
        {fault?.field === "objectives" ? <p className={styles.error}>{fault.message}</p> : null}
        <div>
          <Button small onClick={() => write([...objectives, { minimize: metrics.find((metric) => !objectives.some((one) => Object.values(one).includes(metric))) ?? "" }])}>
            Add an objective
          </Button>
        </div>
        {objectives.length > 1 ? <p className={styles.soft}>With several objectives the result is a Pareto set: no one of them is best in all.</p> : null}
        <CheckField
          label="Measurements vary from run to run"
          hint="Then a configuration may be measured again, and no single lucky run is believed."
          checked={draft.file.noisy !== false}
          onChange={(event) => draft.set(["noisy"], event.target.checked ? undefined : false)}
        />
        <Lines
          title="Limits on metrics"
          what="limit"
          hint="What a result must keep, such as memory_mb <= 4096."
          placeholder="memory_mb <= 4096"
          field="outcome_constraints"
          draft={draft}
          fault={fault}
        />
      </div>
    </Card>
  );
}
