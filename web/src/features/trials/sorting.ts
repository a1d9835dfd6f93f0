import { t } from "@lingui/core/macro";
import type { Scalar, Trial } from "@/lib/api/client";

/** A column by which the table of trials can be sorted; `metric:` and `param:` are followed by a name. */
export type Column = "number" | "state" | "agent" | "duration" | `metric:${string}` | `param:${string}`;

export interface Order {
  column: Column;
  descending: boolean;
}

/**
 * Return the seconds from a trial's start to its end, or to `now` while it runs; null before it starts and if it was not timed.
 * The agent reports the start with a short delay, so the trial's measured run time is used if it is longer.
 */
export function duration(trial: Trial, now: Date): number | null {
  if (trial.started_at === null || trial.origin === "added") return null;
  const end = trial.finished_at === null ? now.getTime() : Date.parse(trial.finished_at);
  const own = trial.finished_at === null ? 0 : (trial.seconds ?? 0);
  return Math.max(own, (end - Date.parse(trial.started_at)) / 1000);
}

/** Return the agent that measures a trial, with its node if that has another name, or the name of the client. */
export function measuredBy(trial: Trial): string {
  const { agent, node, client_id } = trial;
  return agent !== "" && node !== "" && node !== agent ? t`${agent} on ${node}` : agent || client_id;
}

/** Return the trials in that order. Trials without a value come last in both directions. */
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
