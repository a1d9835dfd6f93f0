import type { Parameter } from "./api/client";

/** The units of parameters by their names; a parameter without a unit has no entry. */
export type Units = Readonly<Record<string, string>>;

export function unitsOf(parameters: readonly Parameter[]): Units {
  return Object.fromEntries(parameters.flatMap(({ name, unit }) => (unit === undefined || unit === "" ? [] : [[name, unit]])));
}

/** Return the name of a parameter with its unit, for the heads of tables and axes, where values stand without one. */
export function titled(name: string, unit: string | undefined): string {
  return unit === undefined || unit === "" ? name : `${name} (${unit})`;
}
