import { describe, expect, it } from "vitest";
import { tagsOf } from "./tags";

describe("tagsOf", () => {
  it("takes each word once, without what is around it", () => {
    expect(tagsOf(" night,gcc 13 ,,night, ")).toEqual(["night", "gcc 13"]);
    expect(tagsOf("")).toEqual([]);
  });
});
