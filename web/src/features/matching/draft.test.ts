import { expect, it } from "vitest";
import { draftOf, readDraft, shareOf } from "./draft";

const SETTINGS = { threshold: 0.77, weights: { user: 1 / 6, name: 1500, day: 0 }, night_from: 22, night_until: 6 };

it("writes numbers without separators and reads them again", () => {
  const draft = draftOf(SETTINGS);
  expect(draft.weights).toEqual({ user: "0.166667", name: "1500", day: "0" });
  expect(readDraft(draft)).toEqual({ values: { ...SETTINGS, weights: { user: 0.166667, name: 1500, day: 0 } }, faults: {} });
  expect(shareOf(draft, "name")).toBeCloseTo(0.9999, 3);
});

it("names each field that cannot be read", () => {
  const draft = { ...draftOf(SETTINGS), threshold: "1.1", night_from: "24", night_until: "", weights: { user: "much", name: "-1", day: "1" } };
  const { values, faults } = readDraft(draft);
  expect(values).toBeNull();
  expect(Object.keys(faults).sort()).toEqual(["night_from", "night_until", "threshold", "weights.name", "weights.user"]);
  expect(shareOf(draft, "day")).toBeNull();
  expect(readDraft({ ...draftOf(SETTINGS), weights: { user: "0", name: "0" } }).faults).toHaveProperty("weights");
});
