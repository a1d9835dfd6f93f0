import type { ReactNode } from "react";
import styles from "./Wide.module.css";

/** What may be wider than the page scrolls by itself, with the keyboard too. `label` says what it is. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keyboard
    <div className={styles.wide} role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
