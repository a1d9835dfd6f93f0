import { expect, it } from "vitest";
import { colouring, sizeOf } from "./colouring";

const palette = { scale: ["rgb(0, 0, 0)", "rgb(100, 100, 100)"], series: ["red", "green"], soft: "grey" };

it("shades numbers by their place on the scale of the parameter", () => {
  const colour = colouring(palette, { name: "n", type: "int", min: 1, max: 100, log: true });
  expect([colour(1), colour(10), colour(100), colour(1000), colour(undefined)]).toEqual(["rgb(0, 0, 0)", "rgb(50, 50, 50)", "rgb(100, 100, 100)", "grey", "grey"]);
});

it("gives choices distinct colours", () => {
  const colour = colouring(palette, { name: "mode", type: "categorical", values: ["a", "b"] });
  expect([colour("a"), colour("b"), colour("c")]).toEqual(["red", "green", "grey"]);
});

it("lets the area of a point grow evenly with the value, within the range", () => {
  const parameter = { name: "n", type: "int", min: 0, max: 10 } as const;
  const areas = [0, 5, 10].map((value) => sizeOf(parameter, value) ** 2);
  expect(areas.map(Math.round)).toEqual([25, 213, 400]);
  expect([sizeOf(parameter, 1000), sizeOf(parameter, undefined)]).toEqual([20, 5]);
});
