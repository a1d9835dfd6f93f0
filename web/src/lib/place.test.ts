import { expect, test } from "vitest";
import { placeOf, wordsAt } from "./place";

const TEXT = `name: sorter
parameters:
  run: {type: int, min: 4, max: 8}
  "big one":
    type: int
    con
applications:
  main:
    aggregate: me
templates:
  - source: a
    t
`.split("\n");

function at(line: number, column = (TEXT[line] ?? "").length) {
  return placeOf(TEXT, line, column);
}

test("finds a place by the lines above it and the braces before it", () => {
  expect(at(0)).toEqual({ path: "", field: "name" });
  expect(at(2, "  run: {ty".length)).toEqual({ path: "parameters.run" });
  expect(at(2, "  run: {type: i".length)).toEqual({ path: "parameters.run", field: "type" });
  expect(at(2, "  run: {type: int, mi".length)).toEqual({ path: "parameters.run" });
  expect(at(4)).toEqual({ path: "parameters.big one", field: "type" });
  expect(at(5)).toEqual({ path: "parameters.big one" });
  expect(at(8)).toEqual({ path: "applications.main", field: "aggregate" });
  expect(at(11)).toEqual({ path: "templates" });
  expect(at(12, 0)).toEqual({ path: "" });
});

test("finds words by their place, whatever the names are", () => {
  const words = { "": ["name"], "parameters.*": ["type"], "parameters.*.type": ["int"], templates: ["source"] };
  expect(wordsAt(words, { path: "" })).toEqual(["name"]);
  expect(wordsAt(words, { path: "parameters.run" })).toEqual(["type"]);
  expect(wordsAt(words, { path: "parameters.run", field: "type" })).toEqual(["int"]);
  expect(wordsAt(words, { path: "parameters" })).toEqual([]);
  expect(wordsAt(words, { path: "", field: "templates" })).toEqual(["source"]);
});
