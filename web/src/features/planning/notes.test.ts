import { i18n } from "@lingui/core";
import { afterEach, expect, it } from "vitest";
import type { Method, Methods } from "@/lib/api/client";
import { translated } from "./notes";

const grid: Method = {
  name: "grid",
  doc: "Every configuration of the grid once, in order. Then the space is exhausted.",
  options: [{ name: "levels", type: "int", default: 5, doc: "A note that nobody has translated.", min: 1, max: 9, choices: [] }],
  several: true,
};
const methods: Methods = {
  algorithms: [{ ...grid, doc: `Not installed here (pip install x). ${grid.doc}` }],
  resampling: [grid],
  estimators: [],
  pruning: [],
  stopping: [],
  file_keys: [],
  time_units: {},
};

afterEach(() => i18n.loadAndActivate({ locale: "en", messages: {} }));

it("translates the notes of methods, and leaves those that are unknown", async () => {
  i18n.loadAndActivate({ locale: "de", messages: {} });
  const { algorithms, resampling } = await translated(methods);
  expect(resampling[0]?.doc).toMatch(/^Jede Konfiguration des Gitters/);
  expect(resampling[0]?.options[0]?.doc).toBe("A note that nobody has translated.");
  expect(algorithms[0]?.doc).toBe(`Not installed here (pip install x). ${resampling[0]?.doc ?? ""}`);
});

it("leaves the service's own words to English readers", async () => {
  expect(await translated(methods)).toBe(methods);
});
