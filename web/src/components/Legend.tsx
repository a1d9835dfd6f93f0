import type { ReactNode } from "react";
import styles from "./Legend.module.css";

/** The legend of a plot, with an item for each kind of mark. */
export function Legend({ children }: { children: ReactNode }) {
  return <ul className={styles.legend}>{children}</ul>;
}
