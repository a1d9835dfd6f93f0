import { describe, expect, it } from "vitest";
import { domainOf } from "./domain";

describe("domainOf", () => {
  it.each([
    [{ name: "n", type: "int" as const, min: 1, max: 16, step: 2 }, "1 to 16, step 2"],
    [{ name: "b", type: "int" as const, min: 4096, max: 1048576, factor: 2, log: true }, "4,096 to 1,048,576, factor 2, logarithmic"],
    [{ name: "c", type: "categorical" as const, values: ["a", "b", true] }, "a, b or true"],
    [{ name: "c", type: "ordinal" as const, values: [1, 2, 3, 4, 5, 6, 7, 8, 9] }, "1, 2, 3, 4, 5, 6, … (9 values)"],
    [{ name: "f", type: "bool" as const }, "on or off"],
  ])("%o", (parameter, text) => {
    expect(domainOf(parameter)).toBe(text);
  });
});
