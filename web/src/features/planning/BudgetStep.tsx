import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Card } from "@/components/Card";
import { CheckField } from "@/components/Field";
import type { Plan } from "@/lib/api/client";
import { formatDuration, formatNumber } from "@/lib/format";
import { configurations } from "./configurations";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { ValueField } from "./ValueField";

type Place = "budget.max_trials" | "budget.max_time" | "budget.max_node_hours" | "parallelism" | "trial_timeout";

/** How long the search may be, how wide, and how long that will take. */
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
            plan?.size ? t`The space has ${configurations(plan.size)}.` : t`How many are measured.`,
          )}
          {field(t`Time`, "budget.max_time", budget.max_time, t`no limit`, t`From the first trial on: 90s, 20m, 8h.`)}
          {onAgents ? field(t`Node-hours`, "budget.max_node_hours", budget.max_node_hours, t`no limit`, t`The trials' own running time together.`) : null}
          {onAgents ? field(t`Trials at once`, "parallelism", file.parallelism, "1", t`On as many slots of agents.`) : null}
          {onAgents ? field(t`Time for one trial`, "trial_timeout", file.trial_timeout, t`no limit`, t`What takes longer cannot work: 60s, 5m.`) : null}
        </div>
        {onAgents ? (
          <>
            <CheckField
              label={t`Each trial has its node for itself`}
              hint={t`A neighbour's load would pass for the configuration's.`}
              checked={placement.exclusive !== false}
              onChange={(event) => draft.set(["placement", "exclusive"], event.target.checked ? undefined : false)}
            />
            <CheckField
              label={t`One configuration is measured on different nodes`}
              hint={t`A slow node would pass for a slow configuration.`}
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
    return <p className={styles.soft}>{t`How long it will take is not known: no trial of this component and application has finished yet.`}</p>;
  }
  const { total, low, high, trial, basis } = duration;
  return (
    <p>
      {total === null ? (
        t`Without a limit it goes on until somebody stops it.`
      ) : low !== null && high !== null && high > low ? (
        <Trans>
          It takes about <b>{formatDuration(total)}</b>, between {formatDuration(low)} and {formatDuration(high)}, once agents are free.
        </Trans>
      ) : (
        <Trans>
          It takes about <b>{formatDuration(total)}</b>, once agents are free.
        </Trans>
      )}{" "}
      <span className={styles.soft}>{t`One trial took ${formatDuration(trial)} before (the median of ${formatNumber(basis)}).`}</span>
    </p>
  );
}
