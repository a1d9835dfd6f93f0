import { describe, expect, it } from "vitest";
import { tagsOf } from "./TagStudies";

describe("tagsOf", () => {
  it("trims tags and drops duplicates", () => {
    expect(tagsOf(" night,gcc 13 ,,night, ")).toEqual(["night", "gcc 13"]);
    expect(tagsOf("")).toEqual([]);
  });
});
