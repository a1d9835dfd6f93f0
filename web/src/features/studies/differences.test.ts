import { expect, it } from "vitest";
import { rowsOf } from "./differences";

it("marks the parameters in which the recommended configurations differ", () => {
  const rows = rowsOf([
    { configuration: { x: 1, mode: "a" }, default: { x: 0, mode: "a" } },
    { configuration: { x: 2, mode: "a", extra: true }, default: { x: 0, mode: "b", extra: false } },
    { configuration: null, default: { x: 0, mode: "a" } },
  ]);
  expect(rows).toEqual([
    { name: "x", values: [1, 2, undefined], standards: [0], differs: true },
    { name: "mode", values: ["a", "a", undefined], standards: ["a", "b"], differs: false },
    { name: "extra", values: [undefined, true, undefined], standards: [undefined, false], differs: true },
  ]);
});
