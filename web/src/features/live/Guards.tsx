import { t } from "@lingui/core/macro";
import type { LiveReading } from "@/lib/api/client";
import { formatDuration, formatNumber } from "@/lib/format";
import { MOST, nearness } from "./guards";
import styles from "./live.module.css";

/** Show the guards of an instance: each reading, and how near it is to its limit. */
export function Guards({ guards }: { guards: readonly LiveReading[] }) {
  return (
    <ul className={styles.guards} aria-label={t`Guards`}>
      {guards.map((guard) => (
        <Guard key={guard.name} guard={guard} />
      ))}
    </ul>
  );
}

function Guard({ guard }: { guard: LiveReading }) {
  const { name, metric, above, limit, value, seconds, beyond } = guard;
  const { share, tone } = nearness(guard);
  const [read, most] = [value === null ? t`no reading` : formatNumber(value), limit === null ? "" : formatNumber(limit)];
  const bound = limit === null ? t`does not hold now` : above ? t`at most ${most}` : t`at least ${most}`;
  const left = beyond > 0 ? t`beyond the limit for ${formatDuration(beyond)} of ${formatDuration(seconds)}` : "";
  return (
    <li>
      <span className={styles.guardName} title={t`${name} reads ${metric}. It is broken after ${formatDuration(seconds)} beyond its limit, or without a reading.`}>
        {name}
      </span>
      <span className={styles.guardBar} role="img" aria-label={t`${name}: ${read}, ${bound}`}>
        <span className={styles[tone]} style={{ width: `${(100 * share) / MOST}%` }} />
        {limit === null ? null : <span className={styles.limit} style={{ left: `${100 / MOST}%` }} />}
      </span>
      <span className={styles.guardText}>
        <strong>{read}</strong> {bound}
        {left === "" ? null : <span className={styles.badText}> {left}</span>}
      </span>
    </li>
  );
}
