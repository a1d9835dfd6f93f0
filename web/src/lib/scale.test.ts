import { expect, it } from "vitest";
import { isInside, placeOf, ticksOf } from "./scale";

const size = { name: "size", type: "int" as const, min: 1, max: 1024, log: true };
const share = { name: "share", type: "float" as const, min: -1, max: 1 };
const mode = { name: "mode", type: "categorical" as const, values: ["a", "b", 3] };

it("places numbers on their scale, and choices in the middle of their share", () => {
  expect(placeOf(share, 0)).toBe(0.5);
  expect(placeOf(size, 32)).toBeCloseTo(0.5);
  expect(placeOf({ ...size, log: false, factor: 2 }, 32)).toBeCloseTo(0.5);
  expect(placeOf(mode, "b")).toBe(0.5);
  expect(placeOf(mode, 3)).toBeCloseTo(5 / 6);
  expect(placeOf({ name: "flag", type: "bool" }, true)).toBe(0.75);
});

it("has no place for inactive parameters and unknown choices", () => {
  expect(placeOf(share, undefined)).toBeNull();
  expect(placeOf(mode, "c")).toBeNull();
  expect(placeOf({ ...share, min: 2, max: 2 }, 2)).toBe(0.5);
});

it("places a few ticks on an axis", () => {
  expect(ticksOf(share, 3).map(({ text }) => text)).toEqual(["-1", "0", "1"]);
  expect(ticksOf(size, 3).map(({ text }) => text)).toEqual(["1", "32", "1024"]);
  expect(ticksOf(mode).map(({ place }) => place)).toEqual([1 / 6, 0.5, 5 / 6]);
});

it("recognises configurations outside the present space", () => {
  const parameters = [size, share, mode, { name: "flag", type: "bool" as const }];
  expect(isInside(parameters, { size: 1024, share: -1, mode: 3, flag: true })).toBe(true);
  // An inactive parameter is never outside.
  expect(isInside(parameters, { share: 0, mode: "a" })).toBe(true);
  expect(isInside(parameters, { size: 2048, share: 0, mode: "a" })).toBe(false);
  expect(isInside(parameters, { size: 1, share: 0, mode: "c" })).toBe(false);
});
