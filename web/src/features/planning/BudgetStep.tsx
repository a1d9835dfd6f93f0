import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Card } from "@/components/Card";
import { CheckField } from "@/components/Field";
import type { Plan } from "@/lib/api/client";
import { formatConfigurations, formatDuration, formatNumber } from "@/lib/format";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { ValueField } from "./Fields";

type Place = "budget.max_trials" | "budget.max_time" | "budget.max_node_hours" | "parallelism" | "trial_timeout";

/** Set the budget and the parallelism of a study, and estimate its duration. */
export function BudgetStep({ draft, plan }: { draft: Draft; plan: Plan | undefined }) {
  const { file } = draft;
  const budget = (file.budget ?? {}) as Record<string, unknown>;
  const placement = (file.placement ?? {}) as Record<string, unknown>;
  const onAgents = file.component !== undefined;
  const field = (label: string, at: Place, value: unknown, placeholder: string, hint: string) => (
    <FaultAt at={at}>
      {(error) => (
        <ValueField label={label} value={value} placeholder={placeholder} hint={hint} error={error} onChange={(given) => draft.set(at.split("."), given)} />
      )}
    </FaultAt>
  );
  return (
    <Card title={t`Budget`}>
      <div className={styles.stack}>
        <div className={styles.grid}>
          {field(
            t`Trials`,
            "budget.max_trials",
            budget.max_trials,
            t`no limit`,
            plan?.size ? t`The space has ${formatConfigurations(plan.feasible ?? plan.size)}.` : t`The number of trials to measure.`,
          )}
          {field(t`Total time`, "budget.max_time", budget.max_time, t`no limit`, t`Counted from the first trial, e.g. 90s, 20m or 8h.`)}
          {onAgents ? field(t`Node-hours`, "budget.max_node_hours", budget.max_node_hours, t`no limit`, t`The sum of the run times of all trials.`) : null}
          {onAgents ? field(t`Trials at once`, "parallelism", file.parallelism, "1", t`Each trial needs an agent slot.`) : null}
          {onAgents ? field(t`Time limit per trial`, "trial_timeout", file.trial_timeout, t`no limit`, t`A trial that runs longer is infeasible, e.g. 60s or 5m.`) : null}
        </div>
        {onAgents ? (
          <>
            <CheckField
              label={t`One trial per node`}
              hint={t`Other trials on the same node cannot distort the measurement.`}
              checked={placement.exclusive !== false}
              onChange={(event) => draft.set(["placement", "exclusive"], event.target.checked ? undefined : false)}
            />
            <CheckField
              label={t`Replicates on different nodes`}
              hint={t`A slow node cannot make a configuration look slow.`}
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

/** Estimate the duration of the study from earlier trials of the same component and application. */
export function Estimate({ plan }: { plan: Plan | undefined }) {
  const duration = plan?.duration;
  if (plan === undefined) return null;
  if (duration === null || duration === undefined) {
    return <p className={styles.soft}>{t`The duration cannot be estimated: no trial of this component and application has finished yet.`}</p>;
  }
  const { total, low, high, trial, basis } = duration;
  return (
    <p>
      {total === null ? (
        t`Without a limit, the study runs until somebody stops it.`
      ) : low !== null && high !== null && high > low ? (
        <Trans>
          The study takes about <b>{formatDuration(total)}</b> (between {formatDuration(low)} and {formatDuration(high)}) when agents are free.
        </Trans>
      ) : (
        <Trans>
          The study takes about <b>{formatDuration(total)}</b> when agents are free.
        </Trans>
      )}{" "}
      <span className={styles.soft}>{t`One trial takes ${formatDuration(trial)} (median of ${formatNumber(basis)} earlier trials).`}</span>
    </p>
  );
}
