import { t } from "@lingui/core/macro";
import type { Trial, TrialState } from "@/lib/api/client";
import { parse } from "@/lib/conditions";
import type { Shown } from "./columns";

/** A filter of trials, which the service applies. */
export interface Filter {
  /** Empty: any. */
  state: TrialState | "";
  /** The reason why they ended, empty if none was given; null: any. */
  reason: string | null;
  /** Conditions on columns, such as "param:threads > 8". All of them hold. */
  where: readonly string[];
}

export const ALL: Filter = { state: "", reason: null, where: [] };

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

// The columns that the service can filter by, without those of metrics and parameters.
const PLAIN: ReadonlySet<string> = new Set(["number", "attempt", "duration", "agent", "origin"]);

/** Return the columns by which trials can be filtered, each by the name that people write. A metric precedes a parameter of its name. */
export function filterable(columns: readonly Shown[]): Map<string, string> {
  const names = new Map<string, string>([["number", "number"]]);
  for (const column of columns) {
    const name = nameOf(column);
    if ((PLAIN.has(column) || column !== name) && !names.has(name)) names.set(name, column);
  }
  return names;
}

/** Return a condition as the service reads it: "threads>8" becomes "param:threads > 8". What cannot be read is left for the service to refuse. */
export function conditionOf(text: string, columns: ReadonlyMap<string, string>): string {
  const found = parse(text);
  const column = columns.get(found?.column ?? "");
  return found === null || column === undefined ? text.trim() : `${column} ${found.operator} ${found.value}`;
}

/** Return a condition as people write it, without the kind of its column. */
export function conditionText(condition: string): string {
  return condition.replace(/^(metric|param):/, "");
}

function nameOf(column: Shown): string {
  return column.replace(/^(metric|param):/, "");
}
