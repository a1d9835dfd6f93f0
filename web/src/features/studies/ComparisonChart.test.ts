import { describe, expect, it } from "vitest";
import { pointsOf, valueAt } from "./ComparisonChart";

const curve = { study: "a", unit: "s", numbers: [1, 4], values: [3, 1], trials: 8, last_number: 8, objective: null, configuration: null, default: {}, units: {} };

describe("pointsOf", () => {
  it("continues at the best value to the last trial", () => {
    expect(pointsOf(curve, "trial")).toEqual([
      [1, 3],
      [4, 1],
      [8, 1],
    ]);
  });
  it("has no extra point if the last trial is the best", () => {
    expect(pointsOf({ ...curve, last_number: 4 }, "trial")).toHaveLength(2);
  });
  it("counts from 0 to 1 for studies of different lengths", () => {
    expect(pointsOf(curve, "share").map(([x]) => x)).toEqual([0.125, 0.5, 1]);
  });
  it("is empty without measurements", () => {
    expect(pointsOf({ ...curve, numbers: [], values: [], last_number: 0 }, "share")).toEqual([]);
  });
});

describe("valueAt", () => {
  it("is the best measurement until then", () => {
    expect([1, 3.9, 4, 8].map((at) => valueAt(curve, "trial", at))).toEqual([3, 3, 1, 1]);
    expect(valueAt(curve, "share", 0.5)).toBe(1);
  });
  it("is undefined before the first measurement and after the last trial", () => {
    expect(valueAt(curve, "trial", 0.5)).toBeUndefined();
    expect(valueAt(curve, "trial", 9)).toBeUndefined();
  });
});
