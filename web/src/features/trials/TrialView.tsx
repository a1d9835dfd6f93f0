import { t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { Button, CopyButton } from "@/components/Button";
import { Card } from "@/components/Card";
import compact from "@/components/CompactTable.module.css";
import { ConfigurationTable } from "@/components/Table";
import { Invocation } from "@/components/Invocation";
import { Code, Problem } from "@/components/Message";
import type { Configuration, StudySpec, Trial, TrialDetail } from "@/lib/api/client";
import { useNow } from "@/lib/clock";
import { formatDuration, formatMetric, formatTime, unitOf } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { unitsOf } from "@/lib/space";
import { useStopTrial } from "./api";
import { Artifacts } from "./Artifacts";
import { namesOf } from "./columns";
import { Leases } from "./Leases";
import { LogTail } from "./LogTail";
import { MeasureAgain } from "./MeasureAgain";
import { originText } from "./TrialRow";
import { duration, measuredBy } from "./tableQuery";
import { StepsChart } from "./StepsChart";
import styles from "./TrialView.module.css";

interface Props {
  study: string;
  spec: StudySpec;
  trial: TrialDetail;
  standard: Configuration | undefined;
  /** The best configuration; undefined if there is none. */
  best: { number: number; params: Configuration } | undefined;
  mayTune: boolean;
  /** Whether the study still measures enqueued trials. */
  measures: boolean;
}

/** Show everything that is known about a trial. */
export function TrialView({ study, spec, trial, standard, best, mayTune, measures }: Props) {
  const open = trial.state === "ACTIVE" || trial.state === "REQUESTED";
  return (
    <>
      {trial.reason === "" ? null : <p className={styles.reason}>{reasonText(trial.reason, trial.reason_data)}</p>}
      <Facts study={study} spec={spec} trial={trial} mayTune={mayTune} open={open} />
      <div className={styles.columns}>
        <Card
          title={t`Parameters`}
          flush
          actions={
            <>
              {mayTune && measures ? <MeasureAgain study={study} params={trial.params} /> : null}
              <CopyButton label={t`Copy as JSON`} text={JSON.stringify(trial.params, null, 2)} />
            </>
          }
        >
          <Parameters spec={spec} trial={trial} standard={standard} best={best} />
        </Card>
        <div className={styles.column}>
          <Metrics spec={spec} trial={trial} />
          {trial.measurements.length > 1 ? <StepsChart study={study} trial={trial} /> : null}
        </div>
      </div>
      <Card title={t`Output`}>
        {open && trial.agent !== "" ? (
          <LogTail study={study} number={trial.number} />
        ) : trial.log === "" ? (
          <p className={styles.soft}>{trial.agent === "" ? t`No agent ran this trial, so its output is not available.` : t`No output.`}</p>
        ) : (
          <Code>{trial.log}</Code>
        )}
      </Card>
      <HowItRan trial={trial} execution={Boolean(spec.execution)} />
      {trial.artifacts.length === 0 ? null : (
        <Card title={t`Output files`} flush>
          <Artifacts study={study} number={trial.number} artifacts={trial.artifacts} />
        </Card>
      )}
      <Card title={t`Runs on agents`} flush>
        {trial.leases.length === 0 ? (
          <p className={styles.none}>{spec.execution ? t`The trial is not yet assigned to an agent.` : t`Your own script measures this study.`}</p>
        ) : (
          <Leases leases={trial.leases} trial={trial} />
        )}
      </Card>
    </>
  );
}

function Facts({ study, spec, trial, mayTune, open }: { study: string; spec: StudySpec; trial: TrialDetail; mayTune: boolean; open: boolean }) {
  const stop = useStopTrial(study, trial.number);
  const { execution } = spec;
  return (
    <>
      <dl className={styles.facts}>
        <Fact name={t`Origin`}>{originText(trial.origin)}</Fact>
        {trial.repeat === "" ? null : <Fact name={t`Why it is measured again`}>{reasonText(trial.repeat, trial.repeat_data)}</Fact>}
        <Fact name={t`Measured by`}>{measuredBy(trial) || "—"}</Fact>
        <Fact name={t`Duration`}>
          <Elapsed trial={trial} />
        </Fact>
        {trial.seconds === null ? null : <Fact name={t`Run time`}>{formatDuration(trial.seconds)}</Fact>}
        {trial.attempt > 1 ? <Fact name={t`Attempt`}>{trial.attempt}</Fact> : null}
        {execution ? (
          <Fact name={t`Component`}>
            {execution.component}
            {execution.application ? ` / ${execution.application}` : ""}
          </Fact>
        ) : null}
        <Fact name={t`Requested`}>{formatTime(new Date(trial.created_at))}</Fact>
        {open && mayTune ? (
          <Button kind="danger" disabled={stop.isPending} onClick={() => stop.mutate()}>
            {t`Stop this trial`}
          </Button>
        ) : null}
      </dl>
      {stop.error === null ? null : <Problem error={stop.error} />}
    </>
  );
}

function Elapsed({ trial }: { trial: Trial }) {
  const seconds = duration(trial, useNow(1000));
  return <>{seconds === null ? "—" : formatDuration(trial.state === "ACTIVE" && seconds >= 1 ? Math.floor(seconds) : seconds)}</>;
}

function Parameters({ spec, trial, standard, best }: { spec: StudySpec; trial: Trial; standard: Configuration | undefined; best: Props["best"] }) {
  const own = best?.params !== undefined && spec.space.parameters.every(({ name }) => best.params[name] === trial.params[name]);
  return (
    <ConfigurationTable
      names={namesOf(spec, [trial])}
      columns={[
        { title: t`This trial`, values: trial.params },
        ...(best === undefined ? [] : [{ title: own ? t`Best (this one)` : t`Best (trial ${best.number})`, values: best.params }]),
      ]}
      standard={standard}
      units={unitsOf(spec.space.parameters)}
    />
  );
}

function Metrics({ spec, trial }: { spec: StudySpec; trial: Trial }) {
  const entries = Object.entries(trial.metrics ?? {});
  return (
    <Card title={t`Metrics`} flush>
      {entries.length === 0 ? (
        <p className={styles.none}>{trial.state === "ACTIVE" || trial.state === "REQUESTED" ? t`The metrics appear when the trial ends.` : t`The trial has no metrics.`}</p>
      ) : (
        <table className={compact.table}>
          <tbody>
            {entries.map(([metric, value]) => {
              const objective = spec.objectives.find((objective) => objective.metric === metric);
              return (
                <tr key={metric}>
                  <th scope="row">
                    {metric}
                    {objective === undefined ? null : <span className={styles.soft}> {objective.goal === "minimize" ? t`minimized` : t`maximized`}</span>}
                  </th>
                  <td className={compact.number}>{formatMetric(value, unitOf(objective ?? { metric }), 6)}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </Card>
  );
}

/** Show the commands that the agent rendered for the latest run of a trial that has started. */
function HowItRan({ trial, execution }: { trial: TrialDetail; execution: boolean }) {
  const lease = trial.leases.findLast(({ started_at }) => started_at !== null);
  if (!execution || lease === undefined) return null;
  const { invocation } = lease;
  if (invocation === null || invocation.commands.length === 0) {
    return (
      <Card title={t`Execution`}>
        <p className={styles.soft}>{t`Agent ${lease.agent} does not report its command lines. Its administrator has disabled this, or the agent is an earlier version.`}</p>
      </Card>
    );
  }
  return (
    <Card title={t`Execution`}>
      <dl className={styles.facts}>
        <Fact name={t`Agent host`}>{invocation.host}</Fact>
        <Fact name={t`Node`}>{lease.node || "—"}</Fact>
        <Fact name={t`Working directory`}>
          <code>{invocation.folder}</code>
        </Fact>
        {trial.leases.length > 1 ? <Fact name={t`Attempt`}>{lease.attempt}</Fact> : null}
      </dl>
      <div className={styles.below}>
        <Invocation invocation={invocation} />
      </div>
    </Card>
  );
}

/** A name and a value in a list of facts. */
function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className={styles.wrapped}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
