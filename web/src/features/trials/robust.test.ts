import { expect, it } from "vitest";
import { outside, robustRange } from "./robust";
import type { Point, Trajectory } from "./trajectory";

function data(values: readonly number[]): Trajectory {
  const completed = values.map((value, index): Point => [index + 1, value, index + 1]);
  return { completed, doubtful: [], breaking: [], recommended: [], best: [], pruned: [], penalised: [], infeasible: [], failed: [], checks: [] };
}

const USUAL = [10, 9, 9.5, 8.8, 9.2, 8.5, 9.9, 9.1, 8.9, 9.3];

it("shows where the search is, and all of a search without outliers", () => {
  expect(robustRange(data(USUAL), "minimize", 10)).toBeNull();
  const wild = data([...USUAL, 900]);
  const range = robustRange(wild, "minimize", 12);
  expect(range?.[0]).toBeLessThan(8.5);
  expect(range?.[1]).toBeGreaterThan(12);
  expect(range?.[1]).toBeLessThan(13);
  expect(outside(wild, range ?? [0, 0])).toBe(1);
});

it("leaves out small values only if large ones are better", () => {
  const wild = data([...USUAL, -900]);
  expect(robustRange(wild, "maximize", 9)?.[1]).toBeGreaterThan(10);
  // The best value is always shown, however far from the others it is.
  expect(robustRange(wild, "minimize", 9)).toBeNull();
});

it("shows everything of a few trials", () => {
  expect(robustRange(data([1, 2, 900]), "minimize", null)).toBeNull();
});
