import type { StudyState, TrialState } from "@/lib/api/client";
import styles from "./Badge.module.css";

type State = StudyState | TrialState;

const LOOKS: Record<State, [tone: string, text: string]> = {
  ACTIVE: ["accent", "active"],
  PAUSED: ["warn", "paused"],
  COMPLETED: ["good", "completed"],
  ABORTED: ["soft", "aborted"],
  REQUESTED: ["soft", "waiting"],
  INFEASIBLE: ["warn", "infeasible"],
  FAILED: ["bad", "failed"],
  PRUNED: ["info", "stopped early"],
};

/** What a state is called in the console. */
export function stateText(state: State): string {
  return LOOKS[state][1];
}

/** A state, told by word and colour. */
export function StateBadge({ state }: { state: State }) {
  const [tone, text] = LOOKS[state];
  return (
    <span className={`${styles.badge} ${styles[tone]}`}>
      <span className={`${styles.dot} ${state === "ACTIVE" ? styles.alive : ""}`} aria-hidden="true" />
      {text}
    </span>
  );
}
