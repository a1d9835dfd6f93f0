import { plural, t } from "@lingui/core/macro";
import type { MatchingRecord } from "@/lib/api/client";
import { formatPercent } from "@/lib/format";
import styles from "./matching.module.css";

type Feedback = NonNullable<MatchingRecord["feedback"]>;

/** Show how many jobs a record has had, and how their run times changed. A change whose interval contains 0 has no colour. */
export function FeedbackText({ feedback }: { feedback: Feedback | null }) {
  if (feedback === null || feedback.applied + feedback.control === 0) {
    return <span className={styles.soft}>{feedback === null || feedback.unconfirmed === 0 ? t`no jobs yet` : unconfirmedText(feedback)}</span>;
  }
  const change = changeText(feedback);
  return (
    <span>
      <span className={styles.part}>
        {t`${plural(feedback.applied, { one: "# job", other: "# jobs" })} with the settings, ${plural(feedback.control, { one: "# control", other: "# controls" })}`}
      </span>
      {change === null ? (
        <span className={styles.soft}>{t`too few for a comparison`}</span>
      ) : (
        <span className={toneOf(feedback)}>{change}</span>
      )}
      {feedback.unconfirmed === 0 ? null : <span className={styles.soft}>{unconfirmedText(feedback)}</span>}
    </span>
  );
}

function unconfirmedText({ unconfirmed }: Feedback): string {
  return plural(unconfirmed, { one: "# job does not count, because no scheduler has confirmed it", other: "# jobs do not count, because no scheduler has confirmed them" });
}

/** Write the change of the run time with its interval; null if it is not known. */
export function changeText({ change, low, high }: Feedback): string | null {
  if (change === null || low === null || high === null) return null;
  const size = change > 0 ? t`${formatPercent(change, 1)} slower` : t`${formatPercent(-change, 1)} faster`;
  return t`${size} (95 %: ${signed(low)} to ${signed(high)})`;
}

function toneOf({ low, high }: Feedback): string | undefined {
  if (low !== null && low > 0) return styles.bad;
  return high !== null && high < 0 ? styles.good : undefined;
}

/** Write a change of the run time with its sign. */
export function signed(share: number): string {
  return `${share > 0 ? "+" : ""}${formatPercent(share, 1)}`;
}
