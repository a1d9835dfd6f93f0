import { expect, it } from "vitest";
import { compareSearch, matchingSearch, signInSearch, studiesSearch, studySearch, writeComponentSearch } from "./addresses";

it("opens only pages of this site after the sign-in", () => {
  expect(signInSearch({ next: "/studies?q=x" }).next).toBe("/studies?q=x");
  for (const next of ["//elsewhere.example", "/\\elsewhere.example", "https://elsewhere.example", "studies", 7, undefined]) {
    expect(signInSearch({ next }).next).toBeUndefined();
  }
});

it("accepts names of digits, which arrive as numbers", () => {
  expect(compareSearch({ study: [7, "a"], metric: 8 })).toEqual({ study: ["7", "a"], metric: "8" });
  expect(compareSearch({ study: "one" }).study).toEqual(["one"]);
  expect(compareSearch({}).study).toEqual([]);
  // Each study once: the service refuses one that is named twice.
  expect(compareSearch({ study: ["a", "b", "a"] }).study).toEqual(["a", "b"]);
  expect(studiesSearch({ q: 12 }).q).toBe("12");
});

it("drops values that no page knows", () => {
  expect(studySearch({ tab: "elsewhere" }).tab).toBeUndefined();
  expect(studiesSearch({ show: "elsewhere", tag: "" })).toEqual({});
  expect(matchingSearch({ tab: "elsewhere", state: "GONE", decision: "no", q: "" })).toEqual({});
  expect(matchingSearch({ tab: "jobs", record: 12, decision: "CONTROL" })).toEqual({ tab: "jobs", record: "12", decision: "CONTROL" });
  expect([0, 1.5, "2", 3].map((version) => writeComponentSearch({ version }).version)).toEqual([undefined, undefined, undefined, 3]);
});
