import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Badge } from "@/components/Badge";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { ReportedJob } from "@/lib/api/client";
import { formatDuration, formatFixed } from "@/lib/format";
import styles from "./matching.module.css";

interface Props {
  jobs: readonly ReportedJob[];
  link: (record: string) => ReactNode;
}

/** A table of reported jobs: what was decided for each record that they matched, how they ended, and how long they ran. */
export function JobTable({ jobs, link }: Props) {
  return (
    <table className={`${table.table} ${styles.rows}`}>
      <thead>
        <tr>
          <th scope="col">{t`Job`}</th>
          <th scope="col">{t`User`}</th>
          <th scope="col">{t`Nodes`}</th>
          <th scope="col">{t`Records and decisions`}</th>
          <th scope="col">{t`End`}</th>
          <th scope="col">{t`Run time`}</th>
          <th scope="col">{t`Ended`}</th>
        </tr>
      </thead>
      <tbody>
        {jobs.map(({ submission, job_id, job, cluster, partition, considered, end, seconds, ended_at }) => (
          <tr key={submission}>
            <th scope="row">
              <span className={styles.name} title={job.command_line}>
                {job.name || job.program || t`no name`}
                <span className={styles.soft}>{[job_id === "" ? "" : `#${job_id}`, cluster, partition].filter(Boolean).join(" · ")}</span>
              </span>
            </th>
            <td data-label={t`User`}>{job.user}</td>
            <td data-label={t`Nodes`}>{String(job.nodes)}</td>
            <td data-label={t`Records and decisions`}>
              {considered.length === 0 ? (
                <span className={styles.soft}>{t`no match`}</span>
              ) : (
                <ul className={styles.hosts}>
                  {considered.map((one) => (
                    <li key={one.record}>
                      <Badge tone={DECISIONS[one.decision].tone}>{i18n._(DECISIONS[one.decision].text)}</Badge> {link(one.record)}{" "}
                      <span className={styles.soft}>{t`score ${formatFixed(one.score, 3)}`}</span>
                      {one.reason === "" ? null : <span className={`${styles.part} ${styles.soft}`}>{one.reason}</span>}
                    </li>
                  ))}
                </ul>
              )}
            </td>
            <td data-label={t`End`}>
              <span className={end === "FAILED" ? styles.bad : undefined}>{i18n._(ENDS[end])}</span>
            </td>
            <td data-label={t`Run time`}>{formatDuration(seconds)}</td>
            <td data-label={t`Ended`}>
              <Ago at={ended_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** The decisions about a job, and the ends of jobs, as they are shown. */
const DECISIONS = {
  APPLIED: { text: msg`applied`, tone: "good" },
  CONTROL: { text: msg`control`, tone: "info" },
  DRY_RUN: { text: msg`dry run`, tone: "soft" },
  REFUSED: { text: msg`refused`, tone: "warn" },
  EXPLORED: { text: msg`candidate of a live study`, tone: "info" },
} as const;

const ENDS = { COMPLETED: msg`completed`, FAILED: msg`failed`, CANCELLED: msg`cancelled` };
