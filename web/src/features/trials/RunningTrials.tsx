import { t } from "@lingui/core/macro";
import { useState, type ReactNode } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Problem } from "@/components/Message";
import type { Configuration, Trial } from "@/lib/api/client";
import { useNow } from "@/lib/clock";
import { formatDuration, formatNumber } from "@/lib/format";
import { useStopTrial } from "./api";
import { differences } from "./TrialRow";
import { LogTail } from "./LogTail";
import { duration, measuredBy } from "./tableQuery";
import styles from "./RunningTrials.module.css";

const MOST = 12;

interface Props {
  study: string;
  trials: Trial[];
  /** The numbers of running and of waiting trials. */
  running: number;
  waiting: number;
  standard: Configuration | undefined;
  mayStop: boolean;
  link: (number: number, text: string) => ReactNode;
}

/** Show the running trials and their durations. */
export function RunningTrials({ study, trials, running: count, waiting, standard, mayStop, link }: Props) {
  const [reading, read] = useState<number | null>(null);
  const running = trials.filter(({ state }) => state === "ACTIVE");
  if (running.length === 0) return null;
  return (
    <Card title={waiting > 0 ? t`${formatNumber(count)} running, ${formatNumber(waiting)} waiting` : t`${formatNumber(count)} running`} flush>
      <ul className={styles.list}>
        {running.slice(0, MOST).map((trial) => (
          <Running
            key={trial.number}
            study={study}
            trial={trial}
            standard={standard}
            mayStop={mayStop}
            link={link}
            reading={reading === trial.number}
            onRead={() => read(reading === trial.number ? null : trial.number)}
          />
        ))}
      </ul>
      {running.length > MOST ? <p className={styles.more}>{t`and ${formatNumber(running.length - MOST)} more; see the Trials tab.`}</p> : null}
    </Card>
  );
}

interface RunningProps {
  study: string;
  trial: Trial;
  standard: Configuration | undefined;
  mayStop: boolean;
  link: (number: number, text: string) => ReactNode;
  reading: boolean;
  onRead: () => void;
}

function Running({ study, trial, standard, mayStop, link, reading, onRead }: RunningProps) {
  const stop = useStopTrial(study, trial.number);
  const seconds = duration(trial, useNow(1000)) ?? 0;
  return (
    <li className={styles.trial}>
      <div className={styles.line}>
        <span className={styles.number}>{link(trial.number, t`Trial ${trial.number}`)}</span>
        <span className={styles.who}>{measuredBy(trial) || t`a client`}</span>
        <span className={styles.time}>{formatDuration(seconds < 1 ? seconds : Math.floor(seconds))}</span>
        <span className={styles.differs}>{differences(trial.params, standard)}</span>
        <span className={styles.buttons}>
          {trial.agent === "" ? null : (
            <Button small aria-expanded={reading} onClick={onRead}>
              {t`Log`}
            </Button>
          )}
          {mayStop ? (
            <Button small kind="danger" disabled={stop.isPending} aria-label={t`Cancel trial ${trial.number}`} onClick={() => stop.mutate()}>
              {t`Cancel`}
            </Button>
          ) : null}
        </span>
      </div>
      {stop.error === null ? null : <Problem error={stop.error} />}
      {reading ? <LogTail study={study} number={trial.number} /> : null}
    </li>
  );
}
