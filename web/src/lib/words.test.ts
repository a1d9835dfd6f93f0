import { expect, it } from "vitest";
import { nearest } from "./words";

const NAMES = ["threads", "block_kb", "alpha", "huge_pages", "shared_buffers"];

it.each([
  ["thread", "threads"],
  ["Treads", "threads"],
  ["lapha", "alpha"],
  ["shard_bufers", "shared_buffers"],
  ["huge-pages", "huge_pages"],
  ["zzz", undefined],
  ["", undefined],
])("takes %s for %s", (typed, meant) => {
  expect(nearest(typed, NAMES)).toBe(meant);
});
