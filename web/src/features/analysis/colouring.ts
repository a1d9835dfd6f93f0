import type { Palette } from "@/components/palette";
import { shade } from "@/components/plot";
import type { Parameter, Scalar } from "@/lib/api/client";
import { choicesOf, isNumeric, placeOf } from "@/lib/scale";

const SMALLEST = 5;
const LARGEST = 20;

/** Return whether the values of a parameter have a scale of colours; the others are distinct choices. */
export function isScaled(parameter: Parameter): boolean {
  return isNumeric(parameter) || parameter.type === "ordinal" || choicesOf(parameter).length > 6;
}

/** Return the colour of each value of a parameter. A value that the parameter does not have now is grey. */
export function colouring(palette: Pick<Palette, "scale" | "series" | "soft">, parameter: Parameter): (value: Scalar | undefined) => string {
  const choices = choicesOf(parameter);
  if (!isScaled(parameter)) return (value) => palette.series[choices.findIndex((choice) => choice === value)] ?? palette.soft;
  return (value) => {
    const place = placeOf(parameter, value);
    return place === null || place < 0 || place > 1 ? palette.soft : shade(palette.scale, place);
  };
}

/** Return the diameter in pixels of a point for a value of a parameter with a scale. The area, which readers compare, grows evenly. */
export function sizeOf(parameter: Parameter, value: Scalar | undefined): number {
  const place = Math.min(Math.max(placeOf(parameter, value) ?? 0, 0), 1);
  return Math.sqrt(SMALLEST ** 2 + place * (LARGEST ** 2 - SMALLEST ** 2));
}
