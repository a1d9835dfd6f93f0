import { describe, expect, it } from "vitest";
import { pointsOf, valueAt } from "./curves";

const curve = { study: "a", unit: "s", numbers: [1, 4], values: [3, 1], trials: 8, last_number: 8 };

describe("pointsOf", () => {
  it("goes on to the last trial at the best value", () => {
    expect(pointsOf(curve, "trial")).toEqual([
      [1, 3],
      [4, 1],
      [8, 1],
    ]);
  });
  it("has no second end where the last trial was the best", () => {
    expect(pointsOf({ ...curve, last_number: 4 }, "trial")).toHaveLength(2);
  });
  it("counts from 0 to 1 where studies are of different lengths", () => {
    expect(pointsOf(curve, "share").map(([x]) => x)).toEqual([0.125, 0.5, 1]);
  });
  it("is empty before anything was measured", () => {
    expect(pointsOf({ ...curve, numbers: [], values: [], last_number: 0 }, "share")).toEqual([]);
  });
});

describe("valueAt", () => {
  it("is the best of what was measured until then", () => {
    expect([1, 3.9, 4, 8].map((at) => valueAt(curve, "trial", at))).toEqual([3, 3, 1, 1]);
    expect(valueAt(curve, "share", 0.5)).toBe(1);
  });
  it("is nothing before the first measurement and beyond the last trial", () => {
    expect(valueAt(curve, "trial", 0.5)).toBeUndefined();
    expect(valueAt(curve, "trial", 9)).toBeUndefined();
  });
});
