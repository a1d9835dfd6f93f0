import { describe, expect, it } from "vitest";
import { limitOf } from "./limits";

describe("limitOf", () => {
  it("is unlimited only if the text is empty", () => {
    expect([limitOf(""), limitOf("  ")]).toEqual([null, null]);
    expect([limitOf("5"), limitOf("1.5", 60)]).toEqual([5, 90]);
    expect([limitOf("1.5e"), limitOf("1,000"), limitOf("1e400")]).toEqual([NaN, NaN, NaN]);
  });
});
