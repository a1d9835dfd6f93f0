import { expect, it } from "vitest";
import { makeStudy, makeTrial } from "@/testing/factories";
import { thinned, trajectory } from "./trajectory";

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
const SHOWN = { across: "number", best: new Set<number>() } as const;

it("follows the best completed trial, never a bound, up to the last trial", () => {
  expect(trajectory(trials, { metric: "t", goal: "minimize" }, SHOWN)).toEqual({
    completed: [
      [1, 5, 1],
      [3, 7, 3],
      [5, 3, 5],
    ],
    doubtful: [],
    breaking: [],
    recommended: [],
    best: [
      [1, 5, 1],
      [5, 3, 5],
      [8, 3, 5],
    ],
    pruned: [[4, 1, 4]],
    penalised: [],
    infeasible: [[2, 0, 2]],
    failed: [[6, 0, 6]],
    checks: [],
  });
});

it("follows the largest value if more is better", () => {
  expect(trajectory(trials, { metric: "t", goal: "maximize" }, SHOWN).best).toEqual([
    [1, 5, 1],
    [3, 7, 3],
    [8, 7, 3],
  ]);
});

it("has no best value with a context, whose values cannot be compared", () => {
  const study = makeStudy();
  const space = { ...study, spec: { ...study.spec, context: [{ name: "size", values: [8] }] } };
  const found = trajectory(trials, { metric: "t", goal: "minimize" }, { ...SHOWN, space });
  expect(found.best).toEqual([]);
  expect(found.completed).toHaveLength(3);
});

it("is empty without results", () => {
  expect(trajectory([makeTrial({ state: "ACTIVE", metrics: null })], { metric: "t", goal: "minimize" }, SHOWN).best).toEqual([]);
  expect(trajectory([], { metric: "t", goal: "minimize" }, SHOWN).completed).toEqual([]);
});

it("ignores trials outside of the changed space", () => {
  const { spec } = makeStudy();
  const parameters = [{ name: "x", type: "float" as const, min: 0.4, max: 1 }];
  const space = makeStudy({ spec: { ...spec, space: { parameters, constraints: [] } } });
  const measured = [makeTrial({ number: 1, params: { x: 0.1 }, metrics: { t: 1 } }), makeTrial({ number: 2, params: { x: 0.5 }, metrics: { t: 3 } })];
  const { best, completed } = trajectory(measured, { metric: "t", goal: "minimize" }, { ...SHOWN, space });
  expect(best).toEqual([[2, 3, 2]]);
  expect(completed).toHaveLength(2);
});

it("separates recommended and doubtful trials, and finds each final check", () => {
  const origins = ["suggested", "check", "check", "suggested", "check"] as const;
  const measured = origins.map((origin, index) => makeTrial({ number: index + 1, origin, metrics: { t: index }, doubt: index === 3 ? "another process" : "" }));
  const found = trajectory(measured, { metric: "t", goal: "minimize" }, { ...SHOWN, best: new Set([2]) });
  expect(found.recommended).toEqual([[2, 1, 2]]);
  expect(found.doubtful).toEqual([[4, 3, 4]]);
  expect(found.checks).toEqual([
    [2, 3],
    [5, 5],
  ]);
});

it("never steps on a trial that breaks an outcome constraint, and marks it even if it is recommended", () => {
  const values = [5, 1, 4, 3];
  const measured = values.map((t, index) => makeTrial({ number: index + 1, metrics: { t }, breaks: t === 1 || t === 3 ? ["memory <= 4"] : null }));
  const found = trajectory(measured, { metric: "t", goal: "minimize" }, { ...SHOWN, best: new Set([4]) });
  expect(found.breaking).toEqual([
    [2, 1, 2],
    [4, 3, 4],
  ]);
  expect(found.recommended).toEqual([]);
  expect(found.best).toEqual([
    [1, 5, 1],
    [3, 4, 3],
    [4, 4, 3],
  ]);
});

it("gives penalties no place on the vertical axis", () => {
  const measured = [5, 1e9, 4].map((t, index) => makeTrial({ number: index + 1, metrics: { t } }));
  const found = trajectory(measured, { metric: "t", goal: "maximize" }, { ...SHOWN, penalties: new Set([2]) });
  expect(found.penalised).toEqual([[2, 0, 2]]);
  expect(found.completed).toHaveLength(2);
  expect(found.best).toEqual([
    [1, 5, 1],
    [3, 5, 1],
  ]);
});

it("is in the order of time if the horizontal axis shows time", () => {
  const [late, early] = ["2026-01-02T12:00:09Z", "2026-01-02T12:00:03Z"];
  const measured = [makeTrial({ number: 1, metrics: { t: 1 }, finished_at: late }), makeTrial({ number: 2, metrics: { t: 2 }, finished_at: early })];
  expect(trajectory(measured, { metric: "t", goal: "minimize" }, { ...SHOWN, across: "time" }).best).toEqual([
    [Date.parse(early), 2, 2],
    [Date.parse(late), 1, 1],
  ]);
});

it("draws trials that arrived after a sample no denser than the sample, and all that are near", () => {
  const sample = Array.from({ length: 100 }, (_, index) => makeTrial({ number: 10 * index + 3 }));
  const later = Array.from({ length: 100 }, (_, index) => makeTrial({ number: 1001 + index }));
  const drawn = thinned([...sample, ...later], 1100, 110, []);
  expect([...drawn].filter((number) => number <= 1000)).toHaveLength(100);
  expect([...drawn].filter((number) => number > 1000)).toHaveLength(10);
  const near = Array.from({ length: 40 }, (_, index) => makeTrial({ number: 501 + index }));
  const zoomed = thinned([...sample, ...later], 1100, 110, near);
  expect([...zoomed].filter((number) => number > 500 && number <= 540)).toHaveLength(40);
});

it("considers trials that are not drawn for the best value so far", () => {
  const found = trajectory(trials, { metric: "t", goal: "minimize" }, { ...SHOWN, drawn: new Set([1]) });
  expect(found.completed).toEqual([[1, 5, 1]]);
  expect(found.best.at(-1)).toEqual([8, 3, 5]);
});
