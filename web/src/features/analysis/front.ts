import { useCallback } from "react";
import type { Palette } from "@/components/palette";
import { shade } from "@/components/plot";
import type { Configuration, Objective, Parameter, Scalar } from "@/lib/api/client";
import { choicesOf, isNumeric, placeOf } from "@/lib/scale";

/** A configuration that was measured: the number of its first trial and its values. `params`: given if the points can be coloured by them. */
export interface Point {
  number: number;
  params?: Configuration;
  values: Record<string, number>;
  /** False: it breaks an outcome constraint, and is on no front. */
  isAllowed?: boolean;
}

/** Return the values of points by which `frontOf` chooses: none for a point that breaks an outcome constraint. */
export function allowed(points: readonly Point[]): Record<string, number>[] {
  return points.map(({ values, isAllowed = true }) => (isAllowed ? values : {}));
}

/**
 * Return the indices of the points that no other point dominates, in the order of the first objective, best first. A copy of a point
 * of the front is also on the front.
 */
export function frontOf(points: readonly Record<string, number>[], objectives: readonly Pick<Objective, "metric" | "goal">[]): number[] {
  const costs = points.map((point) => objectives.map(({ metric, goal }) => (goal === "minimize" ? 1 : -1) * (point[metric] ?? NaN)));
  const places = costs.map((_, place) => place).filter((place) => costs[place]?.every(Number.isFinite));
  const order = (a: number, b: number): number => {
    for (let index = 0; index < objectives.length; index++) {
      const difference = (costs[a]?.[index] ?? 0) - (costs[b]?.[index] ?? 0);
      if (difference !== 0) return difference;
    }
    return a - b;
  };
  const front: number[] = [];
  for (const place of places.sort(order)) {
    // In this order no point is dominated by a later one.
    if (!front.some((other) => dominates(costs[other] ?? [], costs[place] ?? []))) front.push(place);
  }
  return front;
}

/** Return the indices of the points with these numbers, in the order of a metric; undefined without any of them. */
export function membersOf(points: readonly Point[], numbers: readonly number[] | undefined, metric: string): number[] | undefined {
  const places = points.flatMap(({ number }, place) => (numbers?.includes(number) ? [place] : []));
  return places.length === 0 ? undefined : places.sort((a, b) => (points[a]?.values[metric] ?? 0) - (points[b]?.values[metric] ?? 0));
}

function dominates(a: number[], b: number[]): boolean {
  return a.every((cost, index) => cost <= (b[index] ?? NaN)) && a.some((cost, index) => cost < (b[index] ?? NaN));
}

/** Project a point of the unit cube, rotated around its middle: `turn` around the vertical axis, `tilt` towards the viewer, in degrees. */
export function project([x, y, z]: readonly [number, number, number], turn: number, tilt: number): [number, number] {
  const [a, b] = [(turn * Math.PI) / 180, (tilt * Math.PI) / 180];
  const [u, v, w] = [x - 0.5, y - 0.5, z - 0.5];
  const depth = -u * Math.sin(a) + v * Math.cos(a);
  return [u * Math.cos(a) + v * Math.sin(a), w * Math.cos(b) + depth * Math.sin(b)];
}

/** The view of a cube, in degrees: see `project`. */
export interface View {
  turn: number;
  tilt: number;
}

// A drag across a plot of usual width is a full turn.
const DEGREES_PER_PIXEL = 0.5;

/** Return the view after a drag by some pixels to the right and down. The cube's front follows the pointer. */
export function dragged({ turn, tilt }: View, right: number, down: number): View {
  const around = turn - DEGREES_PER_PIXEL * right;
  // The ranges of the sliders: turn from -180 to below 180, tilt from -90 to 90.
  return { turn: ((((around + 180) % 360) + 360) % 360) - 180, tilt: Math.max(-90, Math.min(90, tilt + DEGREES_PER_PIXEL * down)) };
}

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

/** Return a handler that opens the trial of a clicked point. The trial's number is the third value of the point. */
export function usePick(onPick: (trial: number) => void) {
  return useCallback(
    (item: unknown) => {
      if (Array.isArray(item) && typeof item[2] === "number") onPick(item[2]);
    },
    [onPick],
  );
}
