import { useQuery } from "@tanstack/react-query";
import { Card } from "@/components/Card";
import { Loading, Problem } from "@/components/Message";
import { formatBytes, formatNumber } from "@/lib/format";
import { quotaQuery } from "./api";
import styles from "./access.module.css";

const NAMES = {
  studies: ["Studies", formatNumber],
  active_trials: ["Trials at work", formatNumber],
  stored_trials: ["Stored trials", formatNumber],
  log_bytes: ["Logs", formatBytes],
  suggestions_per_minute: ["Suggestions this minute", formatNumber],
  worker_seconds_per_day: ["Seconds of workers today", formatNumber],
} as const;

/** What the tenant may use, and what it does. */
export function Quota() {
  const { data, error, refetch } = useQuery(quotaQuery);
  return (
    <Card title="Quota">
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {data === undefined ? (
        error === null ? <Loading what="quota" /> : null
      ) : (
        <dl className={styles.quota}>
          {(Object.keys(NAMES) as (keyof typeof NAMES)[]).map((key) => {
            const [name, format] = NAMES[key];
            const used = data.used[key];
            const limit = data.limits[key];
            return (
              <div key={key}>
                <dt>{name}</dt>
                <dd>
                  <b>{format(used)}</b> <span className={styles.soft}>{limit === null ? "no limit of its own" : `of ${format(limit)}`}</span>
                  {limit === null ? null : <meter aria-label={name} min={0} max={Math.max(limit, 1)} high={0.9 * limit} value={Math.min(used, limit)} />}
                </dd>
              </div>
            );
          })}
        </dl>
      )}
    </Card>
  );
}
