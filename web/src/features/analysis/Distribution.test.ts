import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { othersOf } from "./Distribution";

it("does not compare repeats of the default with the default", () => {
  const standard = { x: 0.5, n: 4 };
  const trials = [makeTrial({ number: 1, params: standard, metrics: { seconds: 9 } }), makeTrial({ number: 2, params: { x: 0.1, n: 4 }, metrics: { seconds: 8 } }), makeTrial({ number: 3, params: { n: 4, x: 0.5 }, metrics: { seconds: 8.5 } })];
  expect(othersOf(trials, "seconds", standard)).toEqual([8]);
  expect(othersOf(trials, "seconds", undefined)).toEqual([9, 8, 8.5]);
});
