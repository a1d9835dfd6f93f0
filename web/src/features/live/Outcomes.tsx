import { t } from "@lingui/core/macro";
import { useState, type ReactNode } from "react";
import { Badge } from "@/components/Badge";
import { Button } from "@/components/Button";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { LiveOutcome, LiveStatus } from "@/lib/api/client";
import { formatNumber } from "@/lib/format";
import { decisionText } from "@/lib/decisions";
import { changeText, intervalText } from "@/lib/effects";
import { reasonText } from "@/lib/reasons";
import { judge, percentOf, type Goal } from "./effects";
import { Changes } from "./Plans";
import styles from "./live.module.css";

const FIRST = 10;

/** Show how the trials of a live study have ended, the newest first, with their effects on one scale. */
export function Outcomes({ status, link }: { status: LiveStatus; link: (number: number, text: string) => ReactNode }) {
  const { outcomes, goal, metric } = status.details;
  const ends = outcomes.flatMap(({ effect, low, high }) => (effect === null ? [] : [effect, low ?? effect, high ?? effect])).map(percentOf);
  const reach = Math.min(Math.max(5, ...ends.map(Math.abs)), 100);
  const [all, showAll] = useState(false);
  return (
    <>
      <table className={table.table}>
        <thead>
          <tr>
            <th scope="col">{t`Trial`}</th>
            <th scope="col">{t`Change`}</th>
            <th scope="col">{t`End`}</th>
            <th scope="col">{t`Effect on ${metric}, 95 % interval`}</th>
            <th scope="col" className={table.number}>{t`Pairs`}</th>
            <th scope="col">{t`Ended`}</th>
          </tr>
        </thead>
        <tbody>
          {(all ? outcomes : outcomes.slice(0, FIRST)).map((one) => (
            <tr key={one.trial}>
              <th scope="row">{link(one.trial, t`Trial ${String(one.trial)}`)}</th>
              <td data-label={t`Change`}>
                <Changes changes={one.changes} />
              </td>
              <td data-label={t`End`}>
                <End outcome={one} />
              </td>
              <td data-label={t`Effect`}>
                <Effect outcome={one} goal={goal} reach={reach} />
              </td>
              <td data-label={t`Pairs`} className={table.number}>
                {formatNumber(one.pairs)}
              </td>
              <td data-label={t`Ended`}>{one.ended_at === null ? "—" : <Ago at={one.ended_at} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {outcomes.length > FIRST ? (
        <p className={styles.all}>
          <Button small kind="quiet" onClick={() => showAll(!all)}>
            {all ? t`Show fewer` : t`Show all ${formatNumber(outcomes.length)}`}
          </Button>
        </p>
      ) : null}
    </>
  );
}

function End({ outcome: { decision, kept, state, reason, reason_data } }: { outcome: LiveOutcome }) {
  const tone = kept ? "good" : decision === "guard" || state === "FAILED" ? "bad" : decision === "harm" ? "warn" : "soft";
  const text = reasonText(reason, reason_data).split("\n")[0] ?? "";
  return (
    <span className={styles.end} title={text === "" ? undefined : text}>
      <Badge tone={tone}>{kept ? t`kept` : decision === "" ? t`no result` : decisionText(decision)}</Badge>
      {decision === "guard" || decision === "" || state === "FAILED" ? <span className={styles.soft}>{text}</span> : null}
    </span>
  );
}

function Effect({ outcome: { effect, low, high }, goal, reach }: { outcome: LiveOutcome; goal: Goal; reach: number }) {
  if (effect === null) return <span className={styles.soft}>—</span>;
  const at = (log: number) => 50 + 50 * Math.max(-1, Math.min(1, percentOf(log) / reach));
  const verdict = judge(low, high, goal);
  const interval = intervalText(low, high);
  return (
    <span className={styles.effect}>
      <span className={`${styles.forest} ${styles[verdict]}`} aria-hidden="true">
        <span className={styles.zero} />
        <span className={styles.interval} style={{ left: `${low === null ? 0 : at(low)}%`, width: `${(high === null ? 100 : at(high)) - (low === null ? 0 : at(low))}%` }} />
        <span className={styles.estimate} style={{ left: `${at(effect)}%` }} />
      </span>
      <span>
        <strong>{changeText(effect)}</strong> {interval === null ? null : <span className={styles.soft}>{interval}</span>}
      </span>
    </span>
  );
}
