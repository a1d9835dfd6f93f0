import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { MatchingRecord, Study } from "@/lib/api/client";
import { recordOfStudyQuery } from "./api";
import { FeedbackText } from "./Feedback";
import styles from "./matching.module.css";
import { RecordReason, RecordState } from "./RecordState";

interface Props {
  study: Study;
  link: (record: MatchingRecord) => ReactNode;
}

/** Say whether jobs get the settings of a study, and how they fared; nothing for a study without a record. */
export function StudyRecord({ study, link }: Props) {
  const { data } = useQuery(recordOfStudyQuery(study.name));
  const record = recordOf(study, data?.records ?? []);
  if (record === undefined) return null;
  return (
    <section className={styles.ofStudy} aria-label={t`Application matching`}>
      <RecordState record={record} />
      <p>
        <RecordReason record={record} />
      </p>
      {/* The reason has the figures of slower jobs already. */}
      {record.cause === "jobs" ? null : <FeedbackText feedback={record.feedback} />}
      {link(record)}
    </section>
  );
}

/** Return the record of a study among those of its name: a deleted study may have had the same name. */
export function recordOf({ created_at }: Pick<Study, "created_at">, records: readonly MatchingRecord[]): MatchingRecord | undefined {
  return records.find((record) => record.cause !== "deletion" && Date.parse(record.created_at) >= Date.parse(created_at));
}
