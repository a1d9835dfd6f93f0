import { expect, it } from "vitest";
import { makeStudy, makeTrial } from "@/testing/factories";
import { limitedMetrics, usualColumns } from "./columns";
import { brokenLimits, brokenText } from "./Limits";

const LIMIT = "memory_mb <= 900";

it("counts the completed trials that break a limit, and selects them", () => {
  const trials = [makeTrial({ number: 1, breaks: [LIMIT] }), makeTrial({ number: 2 }), makeTrial({ number: 3, state: "FAILED", breaks: [LIMIT] })];
  expect(brokenLimits([LIMIT, "rate >= 2 * load"], trials)).toEqual([
    { limit: LIMIT, broken: 1, condition: "metric:memory_mb > 900" },
    { limit: "rate >= 2 * load", broken: 0, condition: null },
  ]);
});

it("shows the limited metrics as columns, without being asked", () => {
  const { spec } = makeStudy();
  expect(limitedMetrics({ ...spec, outcome_constraints: [LIMIT, "memory_mb >= 1", "seconds < 9"] })).toEqual(["memory_mb"]);
  expect(usualColumns({ ...spec, outcome_constraints: [LIMIT] }).slice(0, 2)).toEqual(["metric:seconds", "metric:memory_mb"]);
});

it("says what was measured where a limit is broken", () => {
  const metrics = { memory_mb: 1432.65, memory: 3, seconds: 7, rate: 2, load: 4 };
  expect(brokenText(LIMIT, metrics)).toBe("memory_mb <= 900 (memory_mb: 1,433)");
  expect(brokenText("rate >= 2 * load", metrics)).toBe("rate >= 2 * load (rate: 2, load: 4)");
  expect(brokenText(LIMIT, {})).toBe(LIMIT);
});
