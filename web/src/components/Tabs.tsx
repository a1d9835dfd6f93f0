import type { ReactNode } from "react";
import styles from "./Tabs.module.css";

/** The parts of a page, each with an address: its children are links, the present one with `aria-current`. */
export function Tabs({ label, children }: { label: string; children: ReactNode }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {children}
    </nav>
  );
}
