import { useId, type ReactNode } from "react";
import styles from "./Card.module.css";

/** A titled part of a page. */
export function Card({ title, actions, children, flush = false }: { title: ReactNode; actions?: ReactNode; children: ReactNode; flush?: boolean }) {
  const id = useId();
  return (
    <section className={styles.card} aria-labelledby={id}>
      <header className={styles.header}>
        <h2 id={id}>{title}</h2>
        {actions === undefined ? null : <div className={styles.actions}>{actions}</div>}
      </header>
      <div className={flush ? styles.flush : styles.body}>{children}</div>
    </section>
  );
}
