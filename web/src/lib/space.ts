import type { Configuration, Parameter, Scalar, Study } from "@/lib/api/client";
import { isInside } from "./scale";

/** The parts of a study that say how the configuration of an earlier trial counts now. */
export type EditedSpace = Pick<Study, "spec" | "removed" | "imputed">;

/** Return a trial's configuration as one of the study's present space; null if the trial is left out. The service has the same rule. */
export function present({ spec, removed, imputed }: EditedSpace, params: Readonly<Record<string, Scalar>>): Configuration | null {
  const { parameters } = spec.space;
  const values: Configuration = {};
  for (const [name, value] of Object.entries(params)) {
    if (!(name in removed)) values[name] = value;
    else if (removed[name] !== value) return null;
  }
  if (!isInside(parameters, values)) return null;
  const known = { ...imputed, ...values };
  for (const parameter of parameters) {
    const value = known[parameter.name];
    if (value !== undefined && isActive(parameter, parameters, known)) values[parameter.name] = value;
  }
  return isInside(parameters, values) ? values : null;
}

function isActive({ condition }: Parameter, all: readonly Parameter[], values: Readonly<Record<string, Scalar>>): boolean {
  if (!condition) return true;
  const parent = all.find(({ name }) => name === condition.parent);
  const value = values[condition.parent];
  return parent !== undefined && value !== undefined && (condition.values as Scalar[]).includes(value) && isActive(parent, all, values);
}

/** The units of parameters by their names; a parameter without a unit has no entry. */
export type Units = Readonly<Record<string, string>>;

export function unitsOf(parameters: readonly Parameter[]): Units {
  return Object.fromEntries(parameters.flatMap(({ name, unit }) => (unit === undefined || unit === "" ? [] : [[name, unit]])));
}

/** Return whether two configurations have the same values, in whatever order. */
export function isSame(one: Configuration, other: Configuration | null): boolean {
  const names = Object.keys(one);
  return other !== null && names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

/** Return the name of a parameter with its unit, for the heads of tables and axes, where values stand without one. */
export function titled(name: string, unit: string | undefined): string {
  return unit === undefined || unit === "" ? name : `${name} (${unit})`;
}
