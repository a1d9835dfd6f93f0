import type { Parameter, Scalar } from "./api/client";
import { formatValue } from "./format";

/** A value on a parameter's axis: its place from 0 to 1, and its text. */
export interface Tick {
  place: number;
  text: string;
}

/** Return whether a parameter's values are numbers on a scale, and not choices. */
export function isNumeric(parameter: Parameter): boolean {
  return parameter.type === "float" || parameter.type === "int";
}

/** Return whether a parameter's scale is logarithmic. */
export function isLogarithmic({ log, factor, min }: Parameter): boolean {
  return (log === true || factor !== undefined) && min !== undefined && min > 0;
}

/** Return the values of a parameter that is a choice. */
export function choicesOf(parameter: Parameter): Scalar[] {
  return parameter.type === "bool" ? [false, true] : (parameter.values ?? []);
}

/** Return the place of a value on its parameter's axis, 0 to 1. A choice lies in the middle of its share. Null: no such value. */
export function placeOf(parameter: Parameter, value: Scalar | undefined): number | null {
  if (value === undefined) return null;
  if (!isNumeric(parameter)) {
    const choices = choicesOf(parameter);
    const index = choices.findIndex((choice) => choice === value);
    return index < 0 ? null : (index + 0.5) / choices.length;
  }
  const { min = 0, max = 1 } = parameter;
  if (typeof value !== "number") return null;
  if (max === min) return 0.5;
  return isLogarithmic(parameter) ? Math.log(value / min) / Math.log(max / min) : (value - min) / (max - min);
}

/** Return whether a configuration lies in the ranges of these parameters. */
export function isInside(parameters: readonly Parameter[], values: Readonly<Record<string, Scalar>>): boolean {
  return parameters.every((parameter) => {
    const value = values[parameter.name];
    if (value === undefined) return true;
    if (!isNumeric(parameter)) return choicesOf(parameter).includes(value);
    return typeof value === "number" && value >= (parameter.min ?? -Infinity) && value <= (parameter.max ?? Infinity);
  });
}

/** Return a few ticks of a parameter's axis. */
export function ticksOf(parameter: Parameter, most = 5): Tick[] {
  if (!isNumeric(parameter)) {
    const choices = choicesOf(parameter);
    return choices.map((choice, index) => ({ place: (index + 0.5) / choices.length, text: formatValue(choice) }));
  }
  const { min = 0, max = 1 } = parameter;
  return Array.from({ length: most }, (_, index) => {
    const place = index / (most - 1);
    const value = isLogarithmic(parameter) ? min * (max / min) ** place : min + (max - min) * place;
    const written = parameter.type === "int" ? Math.round(value) : Number(value.toPrecision(3));
    return { place: placeOf(parameter, written) ?? place, text: formatValue(written) };
  });
}
