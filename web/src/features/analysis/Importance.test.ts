import { expect, it } from "vitest";
import type { Effect } from "@/lib/api/client";
import { lanesOf } from "./Importance";

const curve = { mean: [], deviation: [] };
const effect = (changes: Partial<Effect>): Effect => ({
  parameter: "x",
  importance: 0.02,
  deviation: 0.05,
  levels: [],
  average: curve,
  change: curve,
  slice: curve,
  ...changes,
});
const share = { value: 0.5, low: 0.4, high: 0.7 };

it("has only the forest's importance without a Gaussian process", () => {
  expect(lanesOf([effect({}), effect({ sensitivity: null })])).toEqual([
    { name: "Forest: main effect", shares: [{ value: 0.02, low: 0, high: 0.07 }, { value: 0.02, low: 0, high: 0.07 }] },
  ]);
});

it("never exceeds the whole variance", () => {
  expect(lanesOf([effect({ importance: 0.9, deviation: 0.18 })])[0]?.shares).toEqual([{ value: 0.9, low: 0.72, high: 1 }]);
});

it("has the measures of both models for each parameter", () => {
  const lanes = lanesOf([effect({ sensitivity: { alone: share, together: { ...share, high: 0.9 } } }), effect({})]);
  expect(lanes.map(({ name }) => name)).toEqual(["Forest: main effect", "Gaussian process: main effect", "Gaussian process: total effect"]);
  expect(lanes[1]?.shares).toEqual([share, null]);
  expect(lanes[2]?.shares[0]?.high).toBe(0.9);
});
