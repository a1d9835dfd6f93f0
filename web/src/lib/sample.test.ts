import { expect, it } from "vitest";
import { distribution, uniform } from "./sample";

const items = Array.from({ length: 10_000 }, (_, index) => ({ number: index + 1 }));

it("takes the same share of each part, and of every period", () => {
  const taken = uniform(items, 1000);
  expect(Math.abs(taken.length - 1000)).toBeLessThan(5);
  for (let first = 1; first < 10_000; first += 1000) {
    const inside = taken.filter(({ number }) => number >= first && number < first + 1000);
    expect(Math.abs(inside.length - 100)).toBeLessThan(5);
  }
  for (const period of [2, 3, 4, 10]) {
    const share = taken.filter(({ number }) => number % period === 0).length / taken.length;
    expect(Math.abs(share - 1 / period)).toBeLessThan(0.02);
  }
});

it("returns all items if there are few", () => {
  expect(uniform(items.slice(0, 5), 5)).toHaveLength(5);
});

it("counts the share of values up to each value", () => {
  expect(distribution([2, 1, 2, 4])).toEqual([
    [1, 0.25],
    [2, 0.75],
    [4, 1],
  ]);
  expect(distribution([])).toEqual([]);
});
