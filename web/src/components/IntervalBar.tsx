import { t } from "@lingui/core/macro";
import { formatGain, formatGainInterval } from "@/lib/format";
import styles from "./IntervalBar.module.css";

interface Props {
  gain: number;
  /** The ends of the 95 % interval; null: unknown. */
  low: number | null;
  high: number | null;
  /** Whether the gain is proven, which alone is green. */
  isProven: boolean;
}

/** Draw a gain as a point with its 95 % interval next to zero, which is no gain. */
export function IntervalBar({ gain, low, high, isProven }: Props) {
  const { at, isWorse } = placesOf(gain, low, high);
  const interval = formatGainInterval({ low, high });
  const tone = isWorse ? styles.bad : isProven ? styles.good : "";
  const label = interval === null ? t`Gain ${formatGain(gain)}, without an interval` : t`Gain ${formatGain(gain)}, 95 % interval from ${interval}`;
  return (
    <div className={`${styles.bar} ${tone}`} role="img" aria-label={label}>
      <span className={styles.track} />
      {low === null || high === null ? null : <span className={styles.interval} style={{ left: `${at(low)}%`, width: `${Math.max(at(high) - at(low), 0)}%` }} />}
      <span className={styles.zero} style={{ left: `${at(0)}%` }} />
      <span className={styles.estimate} style={{ left: `${at(gain)}%` }} />
      <span className={styles.label} style={{ left: `${at(0)}%` }}>
        {t`no gain`}
      </span>
      {interval === null ? null : (
        <span className={styles.label} style={{ left: `${Math.min(Math.max(at(gain), 30), 78)}%` }}>
          {interval}
        </span>
      )}
    </div>
  );
}

/** Return the places of gains in percent of a bar that shows zero, the estimate and the interval, and whether all of it is a loss. */
export function placesOf(gain: number, low: number | null, high: number | null): { at: (value: number) => number; isWorse: boolean } {
  const values = [0, gain, low ?? gain, high ?? gain];
  const [least, most] = [Math.min(...values), Math.max(...values)];
  // Room for the marks at both ends; without any gain, zero is in the middle.
  const margin = most - least > 0 ? (most - least) * 0.12 : 0.01;
  return { at: (value) => (100 * (value - least + margin)) / (most - least + 2 * margin), isWorse: (high ?? gain) < 0 };
}
