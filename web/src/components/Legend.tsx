import type { ReactNode } from "react";
import styles from "./Legend.module.css";

/** What the marks of a plot mean: an item for each. */
export function Legend({ children }: { children: ReactNode }) {
  return <ul className={styles.legend}>{children}</ul>;
}
