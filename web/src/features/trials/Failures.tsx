import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { StateBadge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Problem } from "@/components/Message";
import type { Failure, Trial } from "@/lib/api/client";
import { reasonText } from "@/lib/reasons";
import { failuresQuery } from "./api";
import styles from "./Failures.module.css";

interface Props {
  study: string;
  trials: readonly Trial[];
  sampled: boolean;
  finished: number;
  onPick: (failure: Failure) => void;
}

/** Show why trials gave no result, the most frequent reasons first; nothing if all gave one. */
export function Failures({ study, trials, sampled, finished, onPick }: Props) {
  const { failures, error } = useFailures(study, trials, sampled, finished);
  if (error !== null) return <Problem error={error} />;
  if (failures.length === 0) return null;
  const most = Math.max(...failures.map(({ count }) => count));
  return (
    <Card title={t`Failures`} flush>
      <ul className={styles.list}>
        {failures.map((failure) => (
          <li key={`${failure.state} ${failure.reason}`}>
            <button type="button" className={styles.cause} onClick={() => onPick(failure)}>
              <span className={styles.count}>{failure.count}</span>
              <span className={styles.bar} aria-hidden="true">
                <span style={{ width: `${(100 * failure.count) / most}%` }} />
              </span>
              <StateBadge state={failure.state} />
              <span className={styles.reason}>{reasonText(failure.reason, failure.reason_data) || t`no reason given`}</span>
            </button>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const WITHOUT_RESULT: readonly string[] = ["FAILED", "INFEASIBLE", "PRUNED"];
const MOST = 50;

/**
 * Return why trials gave no result, the most frequent reasons first. They are counted from the shown trials, so that they agree with
 * the other counts. For a sample the service counts them, again when `finished` (trials) changes.
 */
export function useFailures(study: string, trials: readonly Trial[], sampled: boolean, finished: number): { failures: readonly Failure[]; error: Error | null } {
  const counted = useMemo(() => (sampled ? [] : failuresOf(trials)), [trials, sampled]);
  const { data, error } = useQuery({ ...failuresQuery(study, finished), enabled: sampled });
  return sampled ? { failures: data?.failures ?? [], error } : { failures: counted, error: null };
}

/** Count failures in the same way as the service. */
export function failuresOf(trials: readonly Trial[]): Failure[] {
  const found = new Map<string, Failure>();
  for (const { state, reason, reason_data, number } of trials) {
    if (!WITHOUT_RESULT.includes(state)) continue;
    const key = `${state} ${reason}`;
    const { count, first } = found.get(key) ?? { count: 0, first: number };
    found.set(key, { state, reason, reason_data, count: count + 1, first, last: number });
  }
  return [...found.values()].sort((a, b) => b.count - a.count || a.first - b.first).slice(0, MOST);
}
