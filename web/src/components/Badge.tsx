import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { ReactNode } from "react";
import type { StudyState, TrialState } from "@/lib/api/client";
import styles from "./Badge.module.css";

type State = StudyState | TrialState;
type Tone = "accent" | "good" | "warn" | "bad" | "info" | "soft";

const LOOKS: Record<State, { tone: Tone; text: MessageDescriptor }> = {
  ACTIVE: { tone: "accent", text: msg`active` },
  PAUSED: { tone: "warn", text: msg`paused` },
  COMPLETED: { tone: "soft", text: msg`completed` },
  ABORTED: { tone: "soft", text: msg`aborted` },
  REQUESTED: { tone: "soft", text: msg`waiting` },
  INFEASIBLE: { tone: "warn", text: msg`infeasible` },
  FAILED: { tone: "bad", text: msg`failed` },
  PRUNED: { tone: "info", text: msg`pruned` },
};

/** Return the text of a state. */
export function stateText(state: State): string {
  return i18n._(LOOKS[state].text);
}

/** Show a state by a word and a colour. */
export function StateBadge({ state }: { state: State }) {
  return (
    <Badge tone={LOOKS[state].tone} alive={state === "ACTIVE"}>
      {stateText(state)}
    </Badge>
  );
}

/** Show a word with a dot in a colour. `alive`: the dot pulses. */
export function Badge({ tone, alive = false, children }: { tone: Tone; alive?: boolean; children: ReactNode }) {
  return (
    <span className={`${styles.badge} ${styles[tone]}`}>
      <span className={`${styles.dot} ${alive ? styles.alive : ""}`} aria-hidden="true" />
      {children}
    </span>
  );
}

/** Show tags. */
export function Tags({ tags }: { tags: readonly string[] }) {
  if (tags.length === 0) return null;
  return (
    <span className={styles.tags}>
      {tags.map((tag) => (
        <span key={tag} className={styles.tag}>
          {tag}
        </span>
      ))}
    </span>
  );
}
