import styles from "./Progress.module.css";

/** How much of something is done; without a limit there is no bar. */
export function Progress({ done, of, unit }: { done: number; of: number | null | undefined; unit: string }) {
  if (of === null || of === undefined) {
    return (
      <span>
        {done} {unit}
      </span>
    );
  }
  return (
    <span className={styles.progress}>
      <progress className={styles.bar} value={Math.min(done, of)} max={of} aria-label={`${done} of ${of} ${unit}`} />
      <span className={styles.text}>
        {done} / {of}
      </span>
    </span>
  );
}
