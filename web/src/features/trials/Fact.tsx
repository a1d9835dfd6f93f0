import type { ReactNode } from "react";
import styles from "./TrialView.module.css";

/** A name and a value in a list of facts. */
export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.wrapped}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
