import { expect, it } from "vitest";
import { nextName } from "./names";

it.each([
  ["flags", [], "flags-2"],
  ["flags-1", [], "flags-2"],
  ["flags-2", ["flags-1", "flags-2", "flags-3", "flags-4", "flags-40"], "flags-5"],
  ["gcc13", ["gcc13"], "gcc-14"],
  ["night-2026-11", [], "night-2026-12"],
  ["42", [], "42-2"],
])("after %s, where there are %j, comes %s", (name, taken, next) => {
  expect(nextName(name, taken)).toBe(next);
});
