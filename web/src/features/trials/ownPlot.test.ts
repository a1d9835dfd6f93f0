import { expect, it } from "vitest";
import { makeStudy, makeTrial } from "@/testing/factories";
import { columnNamed, placeOn, plotColumns, rangeOf, type PlotColumn } from "./ownPlot";

const { spec: plain } = makeStudy();
const spec = {
  ...plain,
  space: {
    ...plain.space,
    parameters: [...plain.space.parameters, { name: "mode", type: "categorical" as const, values: ["a", "b"], default: "a" }, { name: "y", type: "float" as const, min: 0.1, max: 10, log: true, default: 1 }],
  },
};
const trials = [
  makeTrial({ number: 1, params: { x: 0.2, n: 2, mode: "b", y: 1 }, metrics: { seconds: 3, memory: 5 } }),
  makeTrial({ number: 2, params: { x: 0.4, n: 2, mode: "a", y: 2 }, metrics: { seconds: 1 } }),
  makeTrial({ number: 3, params: { x: 0.6, n: 2, mode: "gone" }, state: "FAILED", metrics: null }),
];
const columns = plotColumns(spec, trials);

function named(name: string): PlotColumn {
  const found = columnNamed(columns, name);
  if (found === undefined) throw new Error(name);
  return found;
}

it("offers numbers, times, metrics and parameters as columns", () => {
  expect(columns.map(({ name }) => name)).toEqual(["number", "duration", "metric:seconds", "metric:memory", "param:x", "param:n", "param:mode", "param:y"]);
  expect(columnNamed(columns, "param:gone", ["param:other", "metric:seconds"])?.name).toBe("metric:seconds");
  expect(named("param:y").isLogarithmic).toBe(true);
  expect(named("metric:seconds").format(0.5)).toBe("500\u202fms");
});

it("puts a trial at its number, a choice near the place of the choice, and nothing without a value", () => {
  const [first, second, failed] = trials as [(typeof trials)[0], (typeof trials)[0], (typeof trials)[0]];
  expect(placeOn(named("metric:seconds"), first)).toBe(3);
  expect(placeOn(named("metric:seconds"), failed)).toBeNull();
  expect(placeOn(named("metric:memory"), second)).toBeNull();
  expect(placeOn(named("duration"), first)).toBe(2);
  expect(placeOn(named("param:mode"), first)).toBeCloseTo(1, 0);
  expect(placeOn(named("param:mode"), second)).toBeCloseTo(0, 0);
  expect(placeOn(named("param:mode"), failed)).toBeNull();
  expect(placeOn(named("param:y"), failed)).toBeNull();
});

it("has a range only if there are different numbers", () => {
  expect(rangeOf(named("metric:seconds"), trials)).toEqual([1, 3]);
  expect(rangeOf(named("param:n"), trials)).toBeNull();
  expect(rangeOf(named("param:mode"), trials)).toBeNull();
});
