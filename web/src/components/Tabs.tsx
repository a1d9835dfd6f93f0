import type { ReactNode } from "react";
import styles from "./Tabs.module.css";

/** Tabs of a page, each with its own address. The children are links; the present one has `aria-current`. */
export function Tabs({ label, children }: { label: string; children: ReactNode }) {
  return (
    <nav className={styles.tabs} aria-label={label}>
      {children}
    </nav>
  );
}
