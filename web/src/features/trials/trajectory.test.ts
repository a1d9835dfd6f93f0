import { expect, it } from "vitest";
import { makeStudy, makeTrial } from "@/testing/factories";
import { trajectory } from "./trajectory";

const trials = [
  makeTrial({ number: 1, metrics: { t: 5 } }),
  makeTrial({ number: 2, state: "INFEASIBLE", metrics: null }),
  makeTrial({ number: 3, metrics: { t: 7 } }),
  makeTrial({ number: 4, state: "PRUNED", metrics: { t: 1 } }),
  makeTrial({ number: 5, metrics: { t: 3 } }),
  makeTrial({ number: 6, state: "FAILED", metrics: null }),
  makeTrial({ number: 7, state: "PRUNED", metrics: null }),
  makeTrial({ number: 8, state: "ACTIVE", metrics: null }),
];

it("follows the best completed trial, never a bound, up to the last trial", () => {
  expect(trajectory(trials, { metric: "t", goal: "minimize" })).toEqual({
    completed: [
      [1, 5],
      [3, 7],
      [5, 3],
    ],
    best: [
      [1, 5],
      [5, 3],
      [8, 3],
    ],
    pruned: [[4, 1]],
    infeasible: [2],
    failed: [6],
  });
});

it("follows the largest value if more is better", () => {
  expect(trajectory(trials, { metric: "t", goal: "maximize" }).best).toEqual([
    [1, 5],
    [3, 7],
    [8, 7],
  ]);
});

it("is empty without results", () => {
  expect(trajectory([makeTrial({ state: "ACTIVE", metrics: null })], { metric: "t", goal: "minimize" }).best).toEqual([]);
  expect(trajectory([], { metric: "t", goal: "minimize" }).completed).toEqual([]);
});

it("ignores trials outside of the changed space", () => {
  const { spec } = makeStudy();
  const parameters = [{ name: "x", type: "float" as const, min: 0.4, max: 1 }];
  const space = makeStudy({ spec: { ...spec, space: { parameters, constraints: [] } } });
  const measured = [makeTrial({ number: 1, params: { x: 0.1 }, metrics: { t: 1 } }), makeTrial({ number: 2, params: { x: 0.5 }, metrics: { t: 3 } })];
  const { best, completed } = trajectory(measured, { metric: "t", goal: "minimize" }, space);
  expect(best).toEqual([[2, 3]]);
  expect(completed).toHaveLength(2);
});
