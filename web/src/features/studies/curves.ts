import type { Comparison } from "@/lib/api/client";

export type Curve = Comparison["curves"][number];
export type Scale = "trial" | "share";

/** Return the corners of a curve: a point for each trial that was better than all before it, and the end. With `share`, the trials of
 * each study count from 0 to 1, so that studies of different lengths can be compared. */
export function pointsOf(curve: Curve, scale: Scale): [number, number][] {
  const across = scale === "share" ? Math.max(curve.last_number, 1) : 1;
  const points = curve.numbers.map((number, index): [number, number] => [number / across, curve.values[index] ?? NaN]);
  const last = curve.values.at(-1);
  if (last !== undefined && curve.last_number > (curve.numbers.at(-1) ?? 0)) points.push([curve.last_number / across, last]);
  return points;
}

/** Return the best value so far at a place between the curve's first measurement and its end. */
export function valueAt(curve: Curve, scale: Scale, at: number): number | undefined {
  const points = pointsOf(curve, scale);
  const end = points.at(-1)?.[0];
  return end === undefined || at > end ? undefined : points.findLast(([x]) => x <= at)?.[1];
}
