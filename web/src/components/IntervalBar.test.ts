import { expect, it } from "vitest";
import { placesOf } from "./IntervalBar";

it("has zero, the estimate and the interval inside, in order", () => {
  const { at, isWorse } = placesOf(0.2, 0.1, 0.3);
  expect(isWorse).toBe(false);
  expect(at(0)).toBeGreaterThan(0);
  expect(at(0)).toBeLessThan(at(0.1));
  expect(at(0.1)).toBeLessThan(at(0.2));
  expect(at(0.3)).toBeLessThan(100);
});

it("shows a loss left of zero, and zero in the middle without a gain", () => {
  expect(placesOf(-0.2, -0.3, -0.1).isWorse).toBe(true);
  expect(placesOf(-0.2, -0.3, 0.1).isWorse).toBe(false);
  expect(placesOf(-0.2, null, null).at(-0.2)).toBeLessThan(placesOf(-0.2, null, null).at(0));
  expect(placesOf(0, null, null).at(0)).toBe(50);
});
