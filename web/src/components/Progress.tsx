import { t } from "@lingui/core/macro";
import { formatNumber } from "@/lib/format";
import styles from "./Progress.module.css";

/** Show progress as a bar with numbers, or only the number if there is no limit. */
export function Progress({ done, of, unit }: { done: number; of: number | null | undefined; unit: string }) {
  if (of === null || of === undefined) {
    return (
      <span>
        {formatNumber(done)} {unit}
      </span>
    );
  }
  return (
    <span className={styles.progress}>
      <progress className={styles.bar} value={Math.min(done, of)} max={of} aria-label={t`${formatNumber(done)} of ${formatNumber(of)} ${unit}`} />
      <span className={styles.text}>
        {formatNumber(done)} / {formatNumber(of)}
      </span>
    </span>
  );
}
