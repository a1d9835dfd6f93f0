import type { ReactNode } from "react";
import styles from "./Wide.module.css";

/** A region with its own horizontal scrollbar, also for the keyboard, for content wider than the page. */
export function Wide({ label, children }: { label: string; children: ReactNode }) {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- the keyboard must reach a scrollable region
    <div className={styles.wide} role="group" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
