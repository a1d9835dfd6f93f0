import { describe, expect, it } from "vitest";
import { makeStudy } from "@/testing/factories";
import { chosenOf, editOf, isFaultOf } from "./edits";

const study = makeStudy({ fixed: { n: 4 } });
const before = chosenOf(study);

describe("an edit", () => {
  it("is empty without changes", () => {
    expect(before).toEqual({ x: { choice: "searched", value: "0.5" }, n: { choice: "fixed", value: "4" } });
    expect(editOf(study, before, "")).toEqual({});
  });

  it("fixes, frees and removes parameters", () => {
    const chosen = { x: { choice: "fixed" as const, value: "0.25" }, n: { choice: "searched" as const, value: "4" } };
    expect(editOf(study, chosen, "")).toEqual({ fix: { x: 0.25 }, free: ["n"] });
    expect(editOf(study, { ...before, n: { choice: "fixed", value: " 8 " } }, "")).toEqual({ fix: { n: 8 } });
    expect(editOf(study, { ...before, x: { choice: "removed", value: "" } }, "")).toEqual({ remove: { x: null } });
  });

  it("adds the parameters of the YAML", () => {
    const text = "cache: {type: int, min: 1, max: 64, default: 8}\nhuge: {type: bool, default: false}";
    expect(editOf(study, before, text).add).toEqual([
      { name: "cache", type: "int", min: 1, max: 64, default: 8 },
      { name: "huge", type: "bool", default: false },
    ]);
    for (const wrong of ["cache", "- cache", "cache: 8", "cache: {"]) expect(() => editOf(study, before, wrong)).toThrow();
  });

  it("gets its errors at the right parameter", () => {
    expect(isFaultOf("fix.n", "n")).toBe(true);
    expect(isFaultOf("fix.n", "x")).toBe(false);
  });
});
