import { Card } from "@/components/Card";
import { CheckField } from "@/components/Field";
import type { Plan } from "@/lib/api/client";
import { formatDigits, formatDuration } from "@/lib/format";
import { messageFor, type Fault } from "./faults";
import styles from "./planning.module.css";
import type { Path } from "./studyFile";
import type { Draft } from "./useDraft";
import { ValueField } from "./ValueField";

/** How long the search may be, how wide, and how long that will take. */
export function BudgetStep({ draft, plan, fault }: { draft: Draft; plan: Plan | undefined; fault: Fault | null }) {
  const { file } = draft;
  const budget = (file.budget ?? {}) as Record<string, unknown>;
  const placement = (file.placement ?? {}) as Record<string, unknown>;
  const onAgents = file.component !== undefined;
  const field = (label: string, path: Path, value: unknown, placeholder: string, hint: string) => (
    <ValueField
      label={label}
      value={value}
      placeholder={placeholder}
      hint={hint}
      error={messageFor(fault, path.join("."))}
      onChange={(given) => draft.set(path, given)}
    />
  );
  return (
    <Card title="Budget">
      <div className={styles.stack}>
        <div className={styles.grid}>
          {field("Trials", ["budget", "max_trials"], budget.max_trials, "no limit", plan?.size ? `There are ${formatDigits(plan.size)} configurations.` : "How many are measured.")}
          {field("Time", ["budget", "max_time"], budget.max_time, "no limit", "From the first trial on: 90s, 20m, 8h.")}
          {onAgents ? field("Node-hours", ["budget", "max_node_hours"], budget.max_node_hours, "no limit", "The trials' own running time together.") : null}
          {onAgents ? field("Trials at once", ["parallelism"], file.parallelism, "1", "On as many slots of agents.") : null}
          {onAgents ? field("Time for one trial", ["trial_timeout"], file.trial_timeout, "no limit", "What takes longer cannot work: 60s, 5m.") : null}
        </div>
        {onAgents ? (
          <>
            <CheckField
              label="Each trial has its node for itself"
              hint="A neighbour's load would pass for the configuration's."
              checked={placement.exclusive !== false}
              onChange={(event) => draft.set(["placement", "exclusive"], event.target.checked ? undefined : false)}
            />
            <CheckField
              label="One configuration is measured on different nodes"
              hint="A slow node would pass for a slow configuration."
              checked={placement.spread !== false}
              onChange={(event) => draft.set(["placement", "spread"], event.target.checked ? undefined : false)}
            />
            <Estimate plan={plan} />
          </>
        ) : null}
      </div>
    </Card>
  );
}

/** How long the search will take, by what trials of the same kind took before. */
export function Estimate({ plan }: { plan: Plan | undefined }) {
  const duration = plan?.duration;
  if (plan === undefined) return null;
  if (duration === null || duration === undefined) {
    return <p className={styles.soft}>How long it will take is not known: no trial of this component and application has finished yet.</p>;
  }
  const { total, low, high, trial, basis } = duration;
  return (
    <p>
      {total === null ? (
        "Without a limit it goes on until somebody stops it."
      ) : (
        <>
          It takes about <b>{formatDuration(total)}</b>
          {low !== null && high !== null && high > low ? `, between ${formatDuration(low)} and ${formatDuration(high)}` : ""}, once agents are free.
        </>
      )}{" "}
      <span className={styles.soft}>
        One trial took {formatDuration(trial)} before (the median of {basis}).
      </span>
    </p>
  );
}
