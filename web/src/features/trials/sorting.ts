import { t } from "@lingui/core/macro";
import type { Scalar, Trial } from "@/lib/api/client";

/** What a table of trials can be sorted by; `metric:` and `param:` are followed by a name. */
export type Column = "number" | "state" | "agent" | "duration" | `metric:${string}` | `param:${string}`;

export interface Order {
  column: Column;
  descending: boolean;
}

/**
 * Seconds from a trial's start to its end, or to `now` while it runs; null before it runs, and where nobody timed it.
 * Its agent tells the start a moment after it; the trial's own running time is then the better answer.
 */
export function duration(trial: Trial, now: Date): number | null {
  if (trial.started_at === null || trial.origin === "added") return null;
  const end = trial.finished_at === null ? now.getTime() : Date.parse(trial.finished_at);
  const own = trial.finished_at === null ? 0 : (trial.seconds ?? 0);
  return Math.max(own, (end - Date.parse(trial.started_at)) / 1000);
}

/** Who measures a trial: an agent, and its node where that has another name; or a client by its own name. */
export function measuredBy(trial: Trial): string {
  const { agent, node, client_id } = trial;
  return agent !== "" && node !== "" && node !== agent ? t`${agent} on ${node}` : agent || client_id;
}

/** The trials in that order; those without a value come last, whichever way. */
export function sortTrials(trials: Trial[], { column, descending }: Order, now: Date): Trial[] {
  const keyed = trials.map((trial) => ({ trial, key: keyOf(trial, column, now) }));
  keyed.sort((a, b) => {
    if (a.key === undefined || b.key === undefined) {
      return Number(a.key === undefined) - Number(b.key === undefined) || a.trial.number - b.trial.number;
    }
    const way = compareKeys(a.key, b.key);
    return (descending ? -way : way) || a.trial.number - b.trial.number;
  });
  return keyed.map(({ trial }) => trial);
}

function keyOf(trial: Trial, column: Column, now: Date): Scalar | undefined {
  if (column.startsWith("metric:")) return trial.metrics?.[column.slice(7)];
  if (column.startsWith("param:")) return trial.params[column.slice(6)];
  switch (column) {
    case "state":
      return trial.state;
    case "agent":
      return measuredBy(trial) || undefined;
    case "duration":
      return duration(trial, now) ?? undefined;
    default:
      return trial.number;
  }
}

function compareKeys(a: Scalar, b: Scalar): number {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  if (typeof a === "string" || typeof b === "string") return typeof a === "string" ? 1 : -1;
  return Number(a) - Number(b);
}
