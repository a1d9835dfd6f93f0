import { t } from "@lingui/core/macro";
import { StateBadge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Problem } from "@/components/Message";
import type { Failure, Trial } from "@/lib/api/client";
import { reasonText } from "@/lib/reasons";
import { useFailures } from "./failures";
import styles from "./Failures.module.css";

interface Props {
  study: string;
  trials: readonly Trial[];
  sampled: boolean;
  finished: number;
  onPick: (failure: Failure) => void;
}

/** Show why trials gave no result, the most frequent reasons first; nothing if all gave one. */
export function Failures({ study, trials, sampled, finished, onPick }: Props) {
  const { failures, error } = useFailures(study, trials, sampled, finished);
  if (error !== null) return <Problem error={error} />;
  if (failures.length === 0) return null;
  const most = Math.max(...failures.map(({ count }) => count));
  return (
    <Card title={t`Failures`} flush>
      <ul className={styles.list}>
        {failures.map((failure) => (
          <li key={`${failure.state} ${failure.reason}`}>
            <button type="button" className={styles.cause} onClick={() => onPick(failure)}>
              <span className={styles.count}>{failure.count}</span>
              <span className={styles.bar} aria-hidden="true">
                <span style={{ width: `${(100 * failure.count) / most}%` }} />
              </span>
              <StateBadge state={failure.state} />
              <span className={styles.reason}>{reasonText(failure.reason, failure.reason_data) || t`no reason given`}</span>
            </button>
          </li>
        ))}
      </ul>
    </Card>
  );
}
