import { expect, it } from "vitest";
import type { Analysis, Objective } from "@/lib/api/client";
import { gainsOf, pointOf } from "./points";

const fast = { numbers: [7], params: { x: 1 }, metrics: { seconds: 5, rate: 80 } };
const cheap = { numbers: [9, 12], params: { x: 2 }, metrics: { seconds: 9, rate: 150 } };
const progress = { unit: "", noise: null, gain_low: -0.1, gain_high: 0.3 };
const analysis = {
  best: [fast, cheap],
  configuration: { x: 2 },
  objectives: [
    { ...progress, metric: "seconds", goal: "minimize", default: 10, best: 9.1, gain: 0.09 },
    { ...progress, metric: "rate", goal: "maximize", default: 100, best: 149, gain: 0.49 },
  ],
  pareto_verdict: null,
} as unknown as Analysis;
const objectives = [
  { metric: "seconds", goal: "minimize" },
  { metric: "rate", goal: "maximize" },
] as Objective[];

it("is the chosen configuration, or the one to which the numbers of the analysis belong", () => {
  expect(pointOf(analysis, 7)).toBe(fast);
  expect(pointOf(analysis, undefined)).toBe(cheap);
  expect(pointOf(analysis, 99)).toBe(cheap);
  expect(pointOf({ ...analysis, best: [] }, 7)).toBeUndefined();
});

it("gains in every objective what this one configuration gains", () => {
  expect(gainsOf(analysis, cheap, objectives).map(({ gain, gain_low }) => [gain, gain_low])).toEqual([
    [0.09, -0.1],
    [0.49, -0.1],
  ]);
  expect(gainsOf(analysis, fast, objectives).map(({ best, gain, gain_low }) => [best, gain, gain_low])).toEqual([
    [5, 0.5, null],
    [80, -0.2, null],
  ]);
});

it("has the numbers of the final check if it has measured the configuration", () => {
  const member = { params: { x: 1 }, objectives: [{ metric: "seconds", value: 5.2, gain: 0.48, low: 0.4, high: 0.5 }, { metric: "rate", value: null, gain: null, low: null, high: null }] };
  const checked = { ...analysis, pareto_verdict: { members: [member] } } as unknown as Analysis;
  expect(gainsOf(checked, fast, objectives).map(({ best, gain, gain_low }) => [best, gain, gain_low])).toEqual([
    [5.2, 0.48, 0.4],
    [80, -0.2, null],
  ]);
});
