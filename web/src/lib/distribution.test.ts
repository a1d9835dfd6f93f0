import { expect, it } from "vitest";
import { distribution } from "./distribution";

it("counts the share of values up to each value", () => {
  expect(distribution([2, 1, 2, 4])).toEqual([
    [1, 0.25],
    [2, 0.75],
    [4, 1],
  ]);
  expect(distribution([])).toEqual([]);
});
