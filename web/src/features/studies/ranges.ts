import { plural, t } from "@lingui/core/macro";
import { textOf, valueOf } from "@/lib/values";
import type { Parameter, Scalar } from "@/lib/api/client";

/** A range in the API's form. Omitted fields keep their present values. */
export interface Range {
  min?: number;
  max?: number;
  values?: Scalar[];
}

/** The typed texts of a parameter's fields. */
export interface Typed {
  min: string;
  max: string;
  values: string;
}

/** Return why the range of a parameter cannot change, or null if it can. */
export function whyFixed(parameter: Parameter, all: readonly Parameter[]): string | null {
  if (parameter.type === "bool") return t`on or off`;
  const children = all.filter(({ condition }) => condition?.parent === parameter.name).map(({ name }) => name);
  const names = children.join(", ");
  return children.length === 0
    ? null
    : plural(children.length, { one: `fixed: ${names} depends on it`, other: `fixed: ${names} depend on it` });
}

/** Return the initial texts of a parameter's fields. */
export function typedOf(parameter: Parameter): Typed {
  return { min: textOf(parameter.min), max: textOf(parameter.max), values: textOf(parameter.values) };
}

/** Return the ranges that differ from the present ones. The service rejects values that are not numbers. */
export function changedRanges(parameters: readonly Parameter[], typed: Readonly<Record<string, Typed>>): Record<string, Range> {
  const found: Record<string, Range> = {};
  for (const parameter of parameters) {
    const own = typed[parameter.name];
    const range = own === undefined ? {} : rangeOf(parameter, own);
    if (Object.keys(range).length > 0) found[parameter.name] = range;
  }
  return found;
}

function rangeOf(parameter: Parameter, typed: Typed): Range {
  const before = typedOf(parameter);
  const range: Range = {};
  if (parameter.values === undefined) {
    for (const key of ["min", "max"] as const) {
      // An empty field is sent too: the service reports that a value is missing.
      if (typed[key].trim() !== before[key]) range[key] = valueOf(typed[key]) as number;
    }
    return range;
  }
  const values = choicesOf(typed.values, parameter.values);
  if (textOf(values) !== before.values) range.values = values;
  return range;
}

/** Parse choices that are separated by commas. Known choices keep their types, so that the text "1" stays a text. */
function choicesOf(text: string, known: readonly Scalar[]): Scalar[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "")
    .map((item) => known.find((value) => textOf(value) === item) ?? (known.every((value) => typeof value === "string") ? item : valueOf(item)));
}

/** Return whether an error is about a field of a parameter, or about the whole parameter. */
export function faultFor(field: unknown, name: string, key?: keyof Typed): boolean {
  const whole = `ranges.${name}`;
  if (typeof field !== "string") return false;
  return key === undefined ? field === whole : field === `${whole}.${key}` || field.startsWith(`${whole}.${key}[`);
}
