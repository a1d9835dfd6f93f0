import { t } from "@lingui/core/macro";
import type { Trial } from "@/lib/api/client";

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

/** Return the order that an address names: "-metric:seconds" is descending by seconds. */
export function orderOf(sort: string): Order {
  return { column: sort.replace(/^-/, "") as Column, descending: sort.startsWith("-") };
}

/** Return the order after a click on a column: the other direction if it is sorted by this column already. */
export function nextSort({ column: before, descending }: Order, column: Column): string {
  const down = before === column ? !descending : column === "number";
  return down ? `-${column}` : column;
}
