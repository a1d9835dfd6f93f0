import { t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Card } from "@/components/Card";
import type { RecordMatch } from "@/lib/api/client";
import { formatFixed, formatGain, formatGainInterval, formatList, formatNumber } from "@/lib/format";
import { costliest, fieldText } from "./score";
import { obstacleOf, type Host, type Obstacle } from "./hosts";
import styles from "./matching.module.css";
import { ScoreChart } from "./ScoreChart";

interface Props {
  match: RecordMatch;
  job: { user: string; partition: string };
  hosts: readonly Host[];
  /** A link to the record. */
  record: ReactNode;
}

/** Explain a candidate: whether its settings would be applied, and the parts of its score. */
export function MatchCard({ match, job, hosts, record }: Props) {
  const { component, application, gain, gain_low: low, gain_high: high } = match.record;
  const interval = formatGainInterval({ low, high }) ?? "";
  return (
    <Card title={[component, application].filter(Boolean).join(" / ")} actions={record}>
      <div className={styles.values}>
        <p className={styles.outcome}>
          <b className={match.accepted ? styles.good : undefined}>{match.accepted ? t`Match.` : t`No match: nothing would be applied.`}</b> {scoreText(match)}
        </p>
        {match.accepted ? <Hosts match={match} job={job} hosts={hosts} /> : <Cost match={match} />}
        <p className={styles.note}>{t`Proven gain: ${formatGain(gain)} (95 %: ${interval}).`}</p>
        <ScoreChart match={match} />
      </div>
    </Card>
  );
}

function scoreText({ score, threshold, accepted }: RecordMatch): string {
  const [own, least] = [formatFixed(score, 3), formatNumber(threshold)];
  return accepted ? t`The score ${own} reaches the threshold ${least}.` : t`The score ${own} is below the threshold ${least}.`;
}

function Cost({ match }: { match: RecordMatch }) {
  const fields = costliest(match.parts).map(({ field }) => fieldText(field));
  return fields.length === 0 ? null : <p>{t`The largest differences: ${formatList(fields, "conjunction")}.`}</p>;
}

function Hosts({ match, job, hosts }: Omit<Props, "record">) {
  if (hosts.length === 0) return <p>{t`Whether they are applied depends on the policy of the submission host: its mode, users, partitions and components. No agent has reported such rules. The tab Settings says more.`}</p>;
  return (
    <ul className={styles.hosts}>
      {hosts.map((host) => {
        const obstacle = obstacleOf(host, job, match.record.component);
        return (
          <li key={host.agent}>
            <b>{host.name}</b>: {obstacle === null ? applied(host) : obstacleText(obstacle)}
          </li>
        );
      })}
    </ul>
  );
}

function applied({ controlShare }: Host): string {
  return t`the rules allow the settings. A share of ${controlShare} of such jobs runs without them as a control, and a value that the user has set always wins.`;
}

function obstacleText(obstacle: Obstacle): string {
  const texts = {
    offline: t`its agent is offline, so nothing would be applied.`,
    off: t`matching is off, so nothing would be applied.`,
    dry_run: t`dry run: the settings would only be logged.`,
    user: t`its rules exclude the user, so nothing would be applied.`,
    partition: t`its rules exclude the partition, so nothing would be applied.`,
    component: t`its rules exclude the component, so nothing would be applied.`,
  };
  return texts[obstacle];
}
