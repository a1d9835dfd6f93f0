import type { Trial } from "@/lib/api/client";
import { select, type Columns } from "@/lib/conditions";
import { duration, measuredBy } from "./tableQuery";

/** Return the trials that meet the conditions of the table, for the plots next to it. A condition that cannot be read here selects all. */
export function linked(trials: Trial[], where: readonly string[], now: Date): Trial[] {
  if (where.length === 0) return trials;
  const columns: Record<string, Columns<Trial>[string]> = {
    number: { number: ({ number }) => number },
    attempt: { number: ({ attempt }) => attempt },
    duration: { number: (trial) => duration(trial, now) },
    agent: { text: measuredBy },
    origin: { text: ({ origin }) => origin },
  };
  for (const { metrics, params } of trials) {
    for (const name of Object.keys(metrics ?? {})) columns[`metric:${name}`] ??= { number: (trial) => trial.metrics?.[name] ?? null };
    for (const [name, value] of Object.entries(params)) columns[`param:${name}`] ??= columnOf(name, value);
  }
  const { rows, wrong } = select(trials, where, columns);
  return wrong === null ? rows : trials;
}

function columnOf(name: string, value: Trial["params"][string]): Columns<Trial>[string] {
  if (typeof value === "number") {
    return {
      number: ({ params }) => {
        const own = params[name];
        return typeof own === "number" ? own : null;
      },
    };
  }
  return { text: ({ params }) => (params[name] === undefined ? null : String(params[name])) };
}
