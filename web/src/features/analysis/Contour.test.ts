import { expect, it } from "vitest";
import { ranksOf } from "./Contour";

it("ranks from the best to the worst, ties in the middle of their ranks", () => {
  expect(ranksOf([3, 1, 2, 5, 4], "minimize")).toEqual([0.5, 0, 0.25, 1, 0.75]);
  expect(ranksOf([3, 1, 2, 5, 4], "maximize")).toEqual([0.5, 1, 0.75, 0, 0.25]);
  expect(ranksOf([1, 7, 7], "minimize")).toEqual([0, 0.75, 0.75]);
  expect(ranksOf([2], "minimize")).toEqual([0]);
  expect(ranksOf([], "minimize")).toEqual([]);
});
