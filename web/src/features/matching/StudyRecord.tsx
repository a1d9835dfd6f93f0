import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import type { MatchingRecord, Study } from "@/lib/api/client";
import { recordOfStudyQuery } from "./api";
import { FeedbackText } from "./Feedback";
import styles from "./matching.module.css";
import { RecordReason } from "./RecordReason";
import { RecordState } from "./RecordState";
import { recordOf } from "./recordOfStudy";

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
      <RecordState state={record.state} />
      <p>
        <RecordReason record={record} />
      </p>
      {/* The reason has the figures of slower jobs already. */}
      {record.cause === "jobs" ? null : <FeedbackText feedback={record.feedback} />}
      {link(record)}
    </section>
  );
}
