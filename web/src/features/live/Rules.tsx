import { plural, t } from "@lingui/core/macro";
import { Badge } from "@/components/Badge";
import type { LiveBudget, LiveStatus, LiveWindow } from "@/lib/api/client";
import { formatDuration, formatNumber, formatPercent, formatTime } from "@/lib/format";
import styles from "./live.module.css";

/** Show what tuning has cost of each budget, in the user's own unit. */
export function Budgets({ budgets }: { budgets: readonly LiveBudget[] }) {
  if (budgets.length === 0) return <p className={styles.soft}>{t`The study has no budget: guards alone limit what a trial may cost.`}</p>;
  return (
    <ul className={styles.budgets}>
      {budgets.map((one) => (
        <Budget key={one.name} budget={one} />
      ))}
    </ul>
  );
}

function Budget({ budget: { name, metric, per, limit, spent, worst } }: { budget: LiveBudget }) {
  const periods: Record<string, string> = { hour: t`this hour`, day: t`today`, week: t`this week` };
  const period = periods[per] ?? per;
  const [lost, most, failure] = [formatNumber(spent, 3), formatNumber(limit ?? 0, 3), formatNumber(worst, 3)];
  const share = limit === null || limit === 0 ? 0 : spent / limit;
  return (
    <li>
      <p className={styles.line}>
        <strong>{name}</strong>
        <span>{limit === null ? t`${lost} ${metric} lost ${period}` : t`${lost} of ${most} ${metric} lost ${period} (${formatPercent(share, 1)})`}</span>
      </p>
      {limit === null ? (
        <p className={styles.soft}>{t`The limit is known after the first pair.`}</p>
      ) : (
        <>
          <span className={styles.guardBar} role="img" aria-label={t`${formatPercent(share, 1)} of budget ${name} used`}>
            <span className={share >= 1 ? styles.bad : share >= 0.85 ? styles.warn : styles.good} style={{ width: `${Math.min(100 * share, 100)}%` }} />
            <span className={styles.atRisk} style={{ left: `${Math.min(100 * share, 100)}%`, width: `${Math.max(0, Math.min(100 * (worst / limit), 100 - 100 * share))}%` }} />
          </span>
          {worst === 0 ? null : <p className={styles.soft}>{t`A trial that fails totally costs at most ${failure} more (hatched).`}</p>}
        </>
      )}
    </li>
  );
}

/** Show when trials may begin, when people approve them, and when the study freezes. */
export function Rules({ status }: { status: LiveStatus }) {
  const { details, broken, settled } = status;
  const share = settled === 0 ? 0 : broken / settled;
  return (
    <dl className={styles.rules}>
      {details.windows.length === 0 ? (
        <div>
          <dt>{t`Change window`}</dt>
          <dd>{t`Trials may begin at any time.`}</dd>
        </div>
      ) : (
        details.windows.map((one) => <Window key={one.name} window={one} />)
      )}
      <div>
        <dt>{t`Approvals`}</dt>
        <dd>{approvalText(details.approve)}</dd>
      </div>
      <div>
        <dt>{t`Freeze`}</dt>
        <dd>
          {settled === 0 ? t`No candidate has been in force yet.` : t`${formatNumber(broken)} of ${plural(settled, { one: "# candidate", other: "# candidates" })} broke a guard (${formatPercent(share, 1)}).`}{" "}
          <span className={styles.soft}>{t`The study pauses from ${formatNumber(details.least_broken)} on, if these are more than ${formatPercent(details.freeze, 1)}.`}</span>
        </dd>
      </div>
    </dl>
  );
}

function Window({ window: { name, days, hours, zone, opens_at: opens, left } }: { window: LiveWindow }) {
  return (
    <div>
      <dt>{name === "window" ? t`Change window` : t`Window for restarts`}</dt>
      <dd>
        {days} {hours} ({zone}){" "}
        {opens === null ? <Badge tone="good">{t`open, ${formatDuration(left)} left`}</Badge> : <Badge tone="soft">{t`closed, opens ${formatTime(new Date(opens))}`}</Badge>}
      </dd>
    </div>
  );
}

function approvalText(approve: LiveStatus["details"]["approve"]): string {
  const { trials, first, people } = approve as { trials?: string; first?: number; people?: number };
  const who = plural(people ?? 1, { one: "# administrator", other: "# administrators" });
  if (first !== undefined) return plural(first, { one: `The first trial needs ${who}.`, other: `The first # trials need ${who} each.` });
  if (trials === "each") return t`Each trial needs ${who}.`;
  if (trials === "restart") return t`Trials that restart the system need ${who} each.`;
  return t`No trial needs an approval, except configurations that a person has enqueued.`;
}
