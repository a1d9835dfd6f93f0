import { expect, it } from "vitest";
import { makeStudy } from "@/testing/factories";
import { compare } from "./configuration";

const { spec } = makeStudy();

it("compares in the space's order and marks what differs", () => {
  expect(compare(spec, { n: 8, x: 0.5 }, { x: 0.5, n: 4 })).toEqual([
    { name: "x", value: 0.5, standard: 0.5, differs: false },
    { name: "n", value: 8, standard: 4, differs: true },
  ]);
});

it("shows a parameter that is active in one of the two, and none that is active in neither", () => {
  expect(compare(spec, {}, { x: 0.5 })).toEqual([{ name: "x", value: undefined, standard: 0.5, differs: true }]);
});
