import { useQuery } from "@tanstack/react-query";
import { StateBadge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Problem } from "@/components/Message";
import type { Failure } from "@/lib/api/client";
import { failuresQuery } from "./api";
import styles from "./Failures.module.css";

interface Props {
  study: string;
  finished: number;
  onPick: (failure: Failure) => void;
}

/** Why trials gave no result, the most frequent reasons first; nothing where all did. */
export function Failures({ study, finished, onPick }: Props) {
  const { data, error } = useQuery(failuresQuery(study, finished));
  if (error !== null) return <Problem error={error} />;
  if (data === undefined || data.failures.length === 0) return null;
  const most = Math.max(...data.failures.map(({ count }) => count));
  return (
    <Card title="Without a result" flush>
      <ul className={styles.list}>
        {data.failures.map((failure) => (
          <li key={`${failure.state} ${failure.reason}`}>
            <button type="button" className={styles.cause} onClick={() => onPick(failure)}>
              <span className={styles.count}>{failure.count}</span>
              <span className={styles.bar} aria-hidden="true">
                <span style={{ width: `${(100 * failure.count) / most}%` }} />
              </span>
              <StateBadge state={failure.state} />
              <span className={styles.reason}>{failure.reason || "no reason was given"}</span>
            </button>
          </li>
        ))}
      </ul>
    </Card>
  );
}
