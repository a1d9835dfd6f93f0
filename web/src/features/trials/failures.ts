import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { Failure, Trial } from "@/lib/api/client";
import { failuresQuery } from "./api";

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
