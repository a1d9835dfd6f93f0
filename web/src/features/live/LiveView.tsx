import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Card } from "@/components/Card";
import type { LiveStatus } from "@/lib/api/client";
import { changeText, intervalText } from "@/lib/effects";
import { formatNumber } from "@/lib/format";
import { useMay } from "@/lib/session";
import { experimentOf, worthOf } from "./effects";
import { Instances } from "./Instances";
import { Jobs } from "./Jobs";
import { Outcomes } from "./Outcomes";
import { PairsChart } from "./PairsChart";
import { Plans } from "./Plans";
import { Budgets, Rules } from "./Rules";
import { Rollout } from "./Rollout";
import { StopButton } from "./StopButton";
import styles from "./live.module.css";

interface Props {
  status: LiveStatus;
  /** A link to a trial of the study. */
  link: (number: number, text: string) => ReactNode;
  /** The notifications about the study. */
  notices?: ReactNode;
}

/** Show a live study: what is in force and why, the running trial, what waits for people, and what tuning has cost. */
export function LiveView({ status, link, notices }: Props) {
  const may = useMay();
  const { details } = status;
  const waiting = status.plans.filter(({ state }) => state === "PLANNED").length;
  return (
    <>
      <div className={styles.bar}>
        <p>
          {details.goal === "minimize" ? t`Lowers ${details.metric} of ${details.component}.` : t`Raises ${details.metric} of ${details.component}.`}{" "}
          <span className={styles.soft}>{summary(status)}</span>
        </p>
        {may("study.update") ? <StopButton status={status} /> : null}
      </div>
      <div className={styles.columns}>
        <div className={styles.column}>
          <Card title={t`In force`}>
            <Instances status={status} link={link} />
          </Card>
          {status.jobs === null || status.jobs === undefined ? null : (
            <Card title={t`Jobs`}>
              <Jobs jobs={status.jobs} />
            </Card>
          )}
          <Experiment status={status} link={link} />
          <Rollout status={status} link={link} />
        </div>
        <div className={styles.column}>
          <Card title={waiting === 0 ? t`Plans` : plural(waiting, { one: "# plan waits for an approval", other: "# plans wait for an approval" })}>
            <Plans status={status} link={link} />
          </Card>
          <Card title={t`Budget`}>
            <Budgets budgets={status.budgets} />
          </Card>
          <Card title={t`Rules`}>
            <Rules status={status} />
          </Card>
        </div>
      </div>
      {details.outcomes.length === 0 ? null : (
        <Card title={t`Trials so far`} flush>
          <Outcomes status={status} link={link} />
        </Card>
      )}
      {notices}
    </>
  );
}

function summary({ kept, settled }: LiveStatus): string {
  if (settled === 0) return t`No candidate has been tried to the end yet.`;
  const now = kept.filter((one) => one.in_force).length;
  const tried = plural(settled, { one: "# candidate tried", other: "# candidates tried" });
  return now === 0 ? t`${tried}, none of them is kept.` : t`${tried}, ${formatNumber(now)} of them kept.`;
}

function Experiment({ status, link }: Props) {
  const { details } = status;
  const found = experimentOf(status.instances);
  if (found === null) return null;
  const last = found.looks.at(-1);
  const interval = last === undefined ? null : intervalText(last.low, last.high);
  const [pairs, most] = [formatNumber(found.pairs), formatNumber(details.most_pairs)];
  return (
    <Card
      title={found.trial === null ? t`Running trial` : t`Pairs of trial ${String(found.trial)}`}
      actions={found.trial === null ? undefined : link(found.trial, t`Trial ${String(found.trial)}`)}
    >
      {last === undefined ? (
        <p className={styles.soft}>{t`The first pair of blocks is not complete yet.`}</p>
      ) : (
        <>
          <p>
            {t`${pairs} of at most ${most} pairs: ${details.metric} changes by ${changeText(last.effect)}`}
            {interval === null ? "." : <span className={styles.soft}> {t`(95 % interval, valid at each look: ${interval}).`}</span>}
          </p>
          <PairsChart study={status.study} metric={details.metric} goal={details.goal} experiment={found} worth={worthOf(details.min_gain, details.goal)} />
        </>
      )}
    </Card>
  );
}
