import { expect, it } from "vitest";
import type { Methods } from "@/lib/api/client";
import { wordsAt } from "@/lib/place";
import { wordsOf } from "./fileWords";

const key = (path: string, kind = "text") => ({ path, kind, doc: "" });
const method = (name: string) => ({ name, doc: "", options: [], several: true });
const METHODS: Methods = {
  algorithms: [method("gp"), method("random")],
  resampling: [],
  estimators: [method("median")],
  pruning: [],
  stopping: [],
  file_keys: [key("budget.max_trials", "integer"), key("budget.max_time"), key("noisy", "boolean"), key("algorithm.name"), key("parameters")],
  time_units: {},
};

it("gives the words of a study file by their place", () => {
  const words = wordsOf(METHODS, ["tile"]);
  expect(wordsAt(words, { path: "" })).toEqual(["budget", "noisy", "algorithm", "parameters"]);
  expect(wordsAt(words, { path: "budget" })).toEqual(["max_trials", "max_time"]);
  expect(wordsAt(words, { path: "", field: "noisy" })).toEqual(["true", "false"]);
  expect(wordsAt(words, { path: "", field: "algorithm" })).toEqual(["name", "gp", "random"]);
  expect(wordsAt(words, { path: "algorithm", field: "name" })).toEqual(["gp", "random"]);
  expect(wordsAt(words, { path: "parameters" })).toEqual(["tile"]);
  expect(wordsAt(words, { path: "parameters.tile", field: "type" })).toContain("ordinal");
  expect(wordsOf(undefined, [])).toEqual({});
});
