import { expect, it } from "vitest";
import { makeStudy } from "@/testing/factories";
import { formatValue } from "./format";
import { present, titled, unitsOf } from "./space";

const { spec } = makeStudy();
const space = {
  spec: {
    ...spec,
    space: {
      parameters: [
        { name: "x", type: "float" as const, min: 0, max: 1 },
        { name: "level", type: "categorical" as const, values: ["O2"] },
        { name: "cache", type: "int" as const, min: 1, max: 64 },
        { name: "pages", type: "int" as const, min: 1, max: 4, condition: { parent: "level", values: ["O3"] } },
      ],
      constraints: [],
    },
  },
  removed: { n: 4 },
  imputed: { cache: 8, pages: 2 },
};

it("gives an earlier configuration the values that it lacks", () => {
  expect(present(space, { x: 0.5, n: 4, level: "O2" })).toEqual({ x: 0.5, level: "O2", cache: 8 });
  expect(present(space, { x: 0.5, level: "O2", cache: 16 })).toEqual({ x: 0.5, level: "O2", cache: 16 });
});

it("leaves out configurations with another value of a removed or fixed parameter", () => {
  expect(present(space, { x: 0.5, n: 5, level: "O2" })).toBeNull();
  expect(present(space, { x: 0.5, n: 4, level: "O3" })).toBeNull();
  expect(present(space, { x: 1.5, n: 4, level: "O2" })).toBeNull();
});

it("is shown after a name, and after a value where one stands alone", () => {
  const units = unitsOf([
    { name: "cache", type: "int", unit: "MiB" },
    { name: "threads", type: "int" },
  ]);
  expect(units).toEqual({ cache: "MiB" });
  expect([titled("cache", units.cache), titled("threads", units.threads)]).toEqual(["cache (MiB)", "threads"]);
  expect([formatValue(4096, units.cache), formatValue(8, units.threads)]).toEqual(["4096\u202fMiB", "8"]);
  expect(formatValue(undefined, "MiB")).toBe("—");
});
