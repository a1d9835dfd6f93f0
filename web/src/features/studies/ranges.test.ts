import { describe, expect, it } from "vitest";
import type { Parameter } from "@/lib/api/client";
import { changedRanges, faultFor, typedOf, whyFixed } from "./ranges";

const PARAMETERS: Parameter[] = [
  { name: "threads", type: "int", min: 1, max: 16 },
  { name: "level", type: "categorical", values: ["1", "2", "fast"] },
  { name: "block", type: "ordinal", values: [4, 16] },
  { name: "huge", type: "bool" },
  { name: "pages", type: "int", min: 1, max: 8, condition: { parent: "block", values: [16] } },
];

const typed = Object.fromEntries(PARAMETERS.map((parameter) => [parameter.name, typedOf(parameter)]));

describe("ranges", () => {
  it("are returned if they differ from the present ones", () => {
    expect(changedRanges(PARAMETERS, typed)).toEqual({});
    expect(changedRanges(PARAMETERS, { ...typed, threads: { min: "1", max: " 64 ", values: "" } })).toEqual({ threads: { max: 64 } });
    expect(changedRanges(PARAMETERS, { ...typed, threads: { min: "", max: "many", values: "" } })).toEqual({ threads: { min: "", max: "many" } });
  });

  it("keep the types of choices", () => {
    const levels = { ...typed, level: { min: "", max: "", values: "1, fast, 3" }, block: { min: "", max: "", values: "4, 64" } };
    expect(changedRanges(PARAMETERS, levels)).toEqual({ level: { values: ["1", "fast", "3"] }, block: { values: [4, 64] } });
  });

  it("are fixed if other parameters depend on them", () => {
    expect(PARAMETERS.map((parameter) => whyFixed(parameter, PARAMETERS))).toEqual([
      null,
      null,
      "fixed: pages depends on it",
      "on or off",
      null,
    ]);
  });

  it("get their errors at the right field", () => {
    expect(faultFor("ranges.level.values[1]", "level", "values")).toBe(true);
    expect(faultFor("ranges.level", "level", "values")).toBe(false);
    expect(faultFor("ranges.level", "level")).toBe(true);
    expect(faultFor(undefined, "level")).toBe(false);
  });
});
