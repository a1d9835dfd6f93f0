import { plural, t } from "@lingui/core/macro";
import { textOf, valueOf } from "@/lib/values";
import type { Parameter, Scalar } from "@/lib/api/client";

/** A range as the service takes it: of what is left out, that which is there stays. */
export interface Range {
  min?: number;
  max?: number;
  values?: Scalar[];
}

/** What a person has typed into the fields of a parameter. */
export interface Typed {
  min: string;
  max: string;
  values: string;
}

/** Whether a parameter has a range, and none depends on it. */
export function whyFixed(parameter: Parameter, all: readonly Parameter[]): string | null {
  if (parameter.type === "bool") return t`on or off`;
  const children = all.filter(({ condition }) => condition?.parent === parameter.name).map(({ name }) => name);
  const names = children.join(", ");
  return children.length === 0
    ? null
    : plural(children.length, { one: `stays as it is: ${names} depends on it`, other: `stays as it is: ${names} depend on it` });
}

/** The fields of a parameter as they are at first. */
export function typedOf(parameter: Parameter): Typed {
  return { min: textOf(parameter.min), max: textOf(parameter.max), values: textOf(parameter.values) };
}

/** The ranges that differ from those that the parameters have. What is no number is left for the service to refuse. */
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
      // An empty field, too, is sent: the service says that a value is missing.
      if (typed[key].trim() !== before[key]) range[key] = valueOf(typed[key]) as number;
    }
    return range;
  }
  const values = choicesOf(typed.values, parameter.values);
  if (textOf(values) !== before.values) range.values = values;
  return range;
}

/** Choices with commas between them: those that are known as they are, so that the text "1" stays one. */
function choicesOf(text: string, known: readonly Scalar[]): Scalar[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "")
    .map((item) => known.find((value) => textOf(value) === item) ?? (known.every((value) => typeof value === "string") ? item : valueOf(item)));
}

/** The message for a field of a parameter, or for all of it. */
export function faultFor(field: unknown, name: string, key?: keyof Typed): boolean {
  const whole = `ranges.${name}`;
  if (typeof field !== "string") return false;
  return key === undefined ? field === whole : field === `${whole}.${key}` || field.startsWith(`${whole}.${key}[`);
}
