import { parse } from "@/lib/conditions";
import type { Shown } from "./columns";

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
