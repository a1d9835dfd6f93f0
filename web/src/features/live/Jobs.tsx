import { plural, t } from "@lingui/core/macro";
import type { LiveStatus } from "@/lib/api/client";
import { formatNumber, formatPercent } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import styles from "./live.module.css";

/** Show the production jobs that a live study learns from. */
export function Jobs({ jobs }: { jobs: NonNullable<LiveStatus["jobs"]> }) {
  const [counted, invalid, open] = [formatNumber(jobs.counted), formatNumber(jobs.void), formatNumber(jobs.open)];
  const reason = reasonText(jobs.reason, jobs.reason_data);
  return (
    <div className={styles.single}>
      <p>
        {plural(jobs.matched, { one: "# job has matched the record", other: "# jobs have matched the record" })}{" "}
        {plural(jobs.days, { one: "within a day", other: "within # days" })}
        {jobs.share === null ? "." : t`; at most ${formatPercent(jobs.share, 1)} of them may get a candidate.`}
      </p>
      <p>{plural(jobs.candidates, { one: "# job has had a candidate.", other: "# jobs have had a candidate." })}</p>
      <p className={styles.soft}>{t`Pairs of jobs: ${counted} counted, ${invalid} without evidence, ${open} open.`}</p>
      {reason === "" ? null : <p>{t`No pair begins now: ${reason}`}</p>}
    </div>
  );
}
