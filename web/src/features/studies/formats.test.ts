import { expect, it } from "vitest";
import { differenceText } from "./formats";

it("lists only what differs, also parameters that only one side has", () => {
  expect(differenceText({ cache: 11, mode: "a", new: 1 }, { cache: 8, mode: "a", old: true }, { cache: "MiB" })).toBe("cache: 8 → 11\u202fMiB\nold: true → —\nnew: — → 1\n");
});
