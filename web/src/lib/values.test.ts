import { describe, expect, it } from "vitest";
import { textOf, valueOf, valuesOf } from "./values";

describe("typed values", () => {
  it("are numbers, switches or texts", () => {
    expect([valueOf("1e-3"), valueOf(" 4 "), valueOf("true"), valueOf("O2"), valueOf("")]).toEqual([0.001, 4, true, "O2", ""]);
    expect(valuesOf("4, 16,, fast")).toEqual([4, 16, "fast"]);
  });
  it("are written as they are typed", () => {
    expect(valuesOf(textOf([4, "fast", false]))).toEqual([4, "fast", false]);
    expect(textOf(undefined)).toBe("");
  });
});
