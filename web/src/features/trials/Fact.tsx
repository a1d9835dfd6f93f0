import type { ReactNode } from "react";
import styles from "./TrialView.module.css";

/** One of a trial's facts, in a list of them. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.wrapped}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
