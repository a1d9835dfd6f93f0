import { expect, it } from "vitest";
import { rowsOf } from "./Differences";

it("marks the parameters in which the recommended configurations differ", () => {
  const none = [undefined, undefined, undefined];
  const rows = rowsOf([
    { configuration: { x: 1, mode: "a" }, default: { x: 0, mode: "a" }, units: { x: "MiB" } },
    { configuration: { x: 2, mode: "a", extra: true }, default: { x: 0, mode: "b", extra: false }, units: { x: "MiB" } },
    { configuration: null, default: { x: 0, mode: "a" }, units: {} },
  ]);
  expect(rows).toEqual([
    { name: "x", values: [1, 2, undefined], units: ["MiB", "MiB", undefined], standards: ["0\u202fMiB", "0"], differs: true },
    { name: "mode", values: ["a", "a", undefined], units: none, standards: ["a", "b"], differs: false },
    { name: "extra", values: [undefined, true, undefined], units: none, standards: ["—", "false"], differs: true },
  ]);
});
