import type { Objective } from "@/lib/api/client";
import type { Trajectory } from "./trajectory";

// Values further from the middle half than so many times its height are outliers (Tukey's rule, with a wider fence).
const FENCE = 2.5;
// Outliers are left out only if they take up more than this share of the axis.
const WASTED = 0.4;

/**
 * Return the part of the vertical axis in which the search is, if a few bad values would take up most of it; null: all values are shown.
 * The best values and the default are always inside.
 */
export function robustRange(data: Trajectory, goal: Objective["goal"], standard: number | null): [number, number] | null {
  const { completed, doubtful, breaking, recommended, pruned } = data;
  const values = [completed, doubtful, breaking, recommended, pruned].flatMap((points) => points.map(([, value]) => value)).sort((a, b) => a - b);
  if (values.length < 8) return null;
  const at = (share: number) => values[Math.round(share * (values.length - 1))] ?? 0;
  const [least, most] = [values[0] ?? 0, values.at(-1) ?? 0];
  const [low, high] = [at(0.25), at(0.75)];
  const isSmaller = goal === "minimize";
  const fence = isSmaller ? Math.max(high + FENCE * (high - low), standard ?? -Infinity) : Math.min(low - FENCE * (high - low), standard ?? Infinity);
  const shown: [number, number] = isSmaller ? [least, Math.min(most, fence)] : [Math.max(least, fence), most];
  if (shown[1] - shown[0] >= (1 - WASTED) * (most - least) || shown[1] <= shown[0]) return null;
  const margin = 0.05 * (shown[1] - shown[0]);
  return [shown[0] - margin, shown[1] + margin];
}

/** Return how many values lie outside of a range. */
export function outside(data: Trajectory, [low, high]: readonly [number, number]): number {
  const { completed, doubtful, breaking, recommended, pruned } = data;
  return [completed, doubtful, breaking, recommended, pruned].reduce((count, points) => count + points.filter(([, value]) => value < low || value > high).length, 0);
}
