import { t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { SortHeader } from "@/components/Table";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { MatchingRecord } from "@/lib/api/client";
import { formatGain, formatGainInterval } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { FeedbackText } from "./Feedback";
import styles from "./matching.module.css";
import { causeText, RecordState } from "./RecordState";

interface Props {
  records: readonly MatchingRecord[];
  sort: string;
  onSort: (sort: string) => void;
  link: (record: MatchingRecord) => ReactNode;
  study: (name: string) => ReactNode;
}

/** A table of records with their jobs, gains and states. */
export function RecordTable({ records, sort, onSort, link, study }: Props) {
  return (
    <table className={`${table.table} ${styles.rows} ${styles.records}`}>
      <thead>
        <tr>
          <SortHeader text={t`Component`} by="component" sort={sort} onSort={onSort} />
          <SortHeader text={t`Study`} by="study" sort={sort} onSort={onSort} />
          <SortHeader text={t`Tuned job`} by="job" sort={sort} onSort={onSort} />
          <SortHeader text={t`Proven gain`} by="gain" sort={sort} down onSort={onSort} />
          <th scope="col">{t`Jobs so far`}</th>
          <th scope="col">{t`State`}</th>
          <SortHeader text={t`Written`} by="created" sort={sort} down onSort={onSort} />
        </tr>
      </thead>
      <tbody>
        {records.map((record) => (
          <tr key={record.id}>
            <th scope="row">
              <span className={styles.name}>
                {link(record)}
                <span className={styles.soft}>{record.application || t`no application`}</span>
              </span>
            </th>
            <td data-label={t`Study`}>{record.cause === "deletion" ? record.study : study(record.study)}</td>
            <td data-label={t`Tuned job`}>
              <span>
                <span className={styles.part}>{record.job.name}</span>
                <span className={styles.soft}>{jobText(record)}</span>
              </span>
            </td>
            <td data-label={t`Proven gain`}>
              <span>
                <span className={`${styles.part} ${styles.good}`}>{formatGain(record.gain)}</span>
                <span className={`${styles.soft} ${styles.whole}`}>{formatGainInterval({ low: record.gain_low, high: record.gain_high })}</span>
              </span>
            </td>
            <td data-label={t`Jobs so far`}>
              <FeedbackText feedback={record.feedback} />
            </td>
            <td data-label={t`State`}>
              <span>
                <RecordState record={record} />
                {record.state === "ACTIVE" ? null : <span className={`${styles.part} ${styles.soft}`} title={reasonText(record.state_reason, record.state_reason_data)}>{causeText(record)}</span>}
              </span>
            </td>
            <td data-label={t`Written`}>
              <Ago at={record.created_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Write the features of a record's job that a reader recognizes it by. */
function jobText({ job: { user, program, nodes } }: MatchingRecord): string {
  const size = nodes === 1 ? t`1 node` : t`${String(nodes)} nodes`;
  return [user, program, size].filter((part) => part !== "").join(", ");
}
