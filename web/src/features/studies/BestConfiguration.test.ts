import { expect, it } from "vitest";
import { makeStudy } from "@/testing/factories";
import { namesOf } from "./BestConfiguration";

const { spec } = makeStudy();

it("names parameters in the space's order", () => {
  expect(namesOf(spec, { n: 8, x: 0.5 }, { x: 0.5, n: 4 })).toEqual(["x", "n"]);
});

it("names a parameter that is active in one of the two, and none that is active in neither", () => {
  expect(namesOf(spec, {}, { x: 0.5 })).toEqual(["x"]);
});
