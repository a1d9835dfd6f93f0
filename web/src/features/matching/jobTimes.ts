import type { MatchingRecord, ReportedJob } from "@/lib/api/client";

export interface RunTime {
  job: string;
  seconds: number;
  nodes: number;
}

export interface RunTimes {
  applied: RunTime[];
  control: RunTime[];
}

/** Return the run times that the feedback on a record compares: completed jobs that were submitted since it became active. */
export function runTimesOf({ id, active_since }: MatchingRecord, jobs: readonly ReportedJob[]): RunTimes {
  const since = Date.parse(active_since);
  const of = (decision: "APPLIED" | "CONTROL") =>
    jobs
      .filter(({ end, seconds, job, considered }) => {
        const counts = end === "COMPLETED" && seconds > 0 && Date.parse(job.submitted_at) >= since;
        return counts && considered.some((one) => one.record === id && one.decision === decision);
      })
      .map(({ job_id, submission, seconds, job: { nodes } }) => ({ job: job_id || submission.slice(0, 8), seconds, nodes }));
  return { applied: of("APPLIED"), control: of("CONTROL") };
}

/** Return the geometric mean of run times; null without any. */
export function meanOf(times: readonly RunTime[]): number | null {
  if (times.length === 0) return null;
  return Math.exp(times.reduce((sum, { seconds }) => sum + Math.log(seconds), 0) / times.length);
}
