import { expect, it } from "vitest";
import { atThreshold, costliest, stepsOf } from "./score";

const PARTS = [
  { field: "user", weight: 0.25, similarity: 1 },
  { field: "name", weight: 0.5, similarity: 0.5 },
  { field: "day", weight: 0, similarity: 0.2 },
  { field: "nodes", weight: 0.25, similarity: 0.25 },
];

it("puts each weighted part where the one before ends", () => {
  expect(stepsOf(PARTS).map(({ field, start, contribution }) => [field, start, contribution])).toEqual([
    ["user", 0, 0.25],
    ["name", 0.25, 0.25],
    ["nodes", 0.5, 0.0625],
  ]);
});

it("names the fields that cost most", () => {
  expect(costliest(PARTS).map(({ field }) => field)).toEqual(["name", "nodes"]);
  expect(costliest([{ field: "user", weight: 1, similarity: 1 }])).toEqual([]);
});

it("finds the quality at a threshold between two measured ones", () => {
  const qualities = [0.5, 0.77, 0.78].map((threshold) => ({ threshold, precision: threshold, recall: 1 }));
  expect(atThreshold(qualities, 0.77)?.precision).toBe(0.77);
  expect(atThreshold(qualities, 0.775)?.precision).toBe(0.78);
  expect(atThreshold(qualities, 0.9)).toBeUndefined();
});
