import { expect, it } from "vitest";
import type { ReportedJob } from "@/lib/api/client";
import { makeRecord } from "@/testing/factories";
import { recordOf } from "./StudyRecord";
import { meanOf, runTimesOf } from "./RunTimes";

function makeReported(decision: string, seconds: number, changes: Partial<ReportedJob> = {}): ReportedJob {
  return {
    submission: "0123456789abcdef",
    job_id: "12",
    job: { submitted_at: "2026-01-03T00:00:00Z", nodes: 2 },
    end: "COMPLETED",
    seconds,
    confirmed: true,
    considered: [{ record: "7", score: 0.9, decision, reason: "" }],
    ...changes,
  } as ReportedJob;
}

it("takes the jobs that the feedback compares, and no others", () => {
  const record = makeRecord({ id: "7", active_since: "2026-01-02T00:00:00Z" });
  const early = { job: { ...makeReported("APPLIED", 1).job, submitted_at: "2026-01-01T00:00:00Z" } };
  const jobs = [
    makeReported("APPLIED", 10),
    makeReported("APPLIED", 40, { job_id: "" }),
    makeReported("CONTROL", 5),
    makeReported("DRY_RUN", 6),
    makeReported("APPLIED", 7, { end: "FAILED" }),
    makeReported("APPLIED", 0),
    makeReported("APPLIED", 11, { confirmed: false }),
    makeReported("APPLIED", 8, early),
    makeReported("APPLIED", 9, { considered: [{ record: "8", score: 0.9, decision: "APPLIED", reason: "" }] }),
  ];
  const { applied, control } = runTimesOf(record, jobs);
  expect(applied.map(({ job, seconds }) => [job, seconds])).toEqual([
    ["12", 10],
    ["01234567", 40],
  ]);
  expect(control.map(({ seconds }) => seconds)).toEqual([5]);
  expect(meanOf(applied)).toBeCloseTo(20);
  expect(meanOf([])).toBeNull();
});

it("does not take the record of a deleted study of the same name", () => {
  const study = { created_at: "2026-01-02T00:00:00Z" };
  const old = makeRecord({ id: "1", created_at: "2026-01-01T00:00:00Z", state: "WITHDRAWN", cause: "deletion" });
  const own = makeRecord({ id: "2", created_at: "2026-01-03T00:00:00Z" });
  expect(recordOf(study, [own, old])?.id).toBe("2");
  expect(recordOf(study, [old])).toBeUndefined();
  expect(recordOf(study, [makeRecord({ created_at: "2026-01-01T00:00:00Z" })])).toBeUndefined();
});
