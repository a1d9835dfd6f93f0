import { expect, it } from "vitest";
import { effectRows } from "./EffectTable";

const curve = (mean: number[], deviation = mean.map(() => 0)) => ({ mean, deviation });
const effect = (parameter: string, levels: (boolean | string | number)[], change: number[], importance: number) => ({
  parameter,
  importance,
  deviation: 0,
  levels,
  average: curve(change),
  change: curve(change, change.map(() => 3)),
  slice: curve(change),
});
const objective = (metric: string, effects: ReturnType<typeof effect>[]) => ({ metric, configurations: 20, explained: 0.9, model: "forest" as const, best: {}, effects, surfaces: [] });

it("compares each level with the default for each objective, most important first", () => {
  const data = {
    objectives: [
      objective("time", [effect("mode", ["a", "b", "c"], [-2, 0, -5], 0.1), effect("flag", [false, true], [0, -1], 0.6)]),
      objective("size", [effect("flag", [false, true], [0, 1], 0.3)]),
    ],
    correlations: [],
    dependences: [],
  };
  const rows = effectRows(data, { mode: "b", flag: false });
  expect(rows.map(({ parameter, level }) => [parameter, level])).toEqual([
    ["flag", true],
    ["mode", "a"],
    ["mode", "c"],
  ]);
  expect(rows[0]?.worth.map(({ metric, change }) => [metric, change])).toEqual([
    ["time", -1],
    ["size", 1],
  ]);
  expect(rows[2]?.worth[0]).toEqual({ metric: "time", change: -5, deviation: 3 });
});

it("omits scales, and parameters that the default does not have", () => {
  const many = Array.from({ length: 20 }, (_, index) => index);
  const data = { objectives: [objective("t", [effect("n", many, many, 1), effect("off", [false, true], [1, 2], 1)])], correlations: [], dependences: [] };
  expect(effectRows(data, { n: 3 })).toEqual([]);
});
