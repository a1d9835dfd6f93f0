import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { failuresOf } from "./Failures";

it("counts trials without a result by state and reason, the most frequent first", () => {
  const failed = (number: number, reason: string, state: "FAILED" | "PRUNED" = "FAILED") => makeTrial({ number, reason, state });
  const trials = [failed(1, "disk"), makeTrial({ number: 2 }), failed(3, "net"), failed(4, "disk"), failed(5, "disk", "PRUNED"), makeTrial({ number: 6, state: "ACTIVE" })];
  expect(failuresOf(trials)).toEqual([
    { state: "FAILED", reason: "disk", reason_data: null, count: 2, first: 1, last: 4 },
    { state: "FAILED", reason: "net", reason_data: null, count: 1, first: 3, last: 3 },
    { state: "PRUNED", reason: "disk", reason_data: null, count: 1, first: 5, last: 5 },
  ]);
  expect(failuresOf([])).toEqual([]);
});
