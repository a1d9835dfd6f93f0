import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { StateBadge } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Progress } from "@/components/Progress";
import { Ago } from "@/components/Time";
import { analysisQuery, studyQuery } from "@/features/studies/api";
import { BestConfiguration } from "@/features/studies/BestConfiguration";
import { ConnectionState } from "@/features/studies/ConnectionState";
import type { Connection } from "@/features/studies/feed";
import { Gain } from "@/features/studies/Gain";
import { StudyActions } from "@/features/studies/StudyActions";
import { useStudyFeed } from "@/features/studies/useStudyFeed";
import { TrajectoryChart } from "@/features/trials/TrajectoryChart";
import { TrialTable } from "@/features/trials/TrialTable";
import { ApiError, type Study, type Trial } from "@/lib/api/client";
import { useThrottled } from "@/lib/clock";
import { formatDuration } from "@/lib/format";
import { useTitle } from "@/lib/title";
import { studyRoute } from "../router";
import styles from "./pages.module.css";

export function StudyPage() {
  const { name } = studyRoute.useParams();
  useTitle(name);
  // A study of another name is another page: nothing of the one before may stay.
  return <StudyByName key={name} name={name} />;
}

function StudyByName({ name }: { name: string }) {
  const { study, trials, complete, connection } = useStudyFeed(name);
  // The stream cannot say why it fails: this asks, at first and after each break.
  const asked = useQuery({ ...studyQuery(name), enabled: study === null || connection === "waiting", refetchInterval: connection === "waiting" ? 5000 : false });
  const missing = asked.error instanceof ApiError && asked.error.status === 404;

  if (missing || connection === "gone") {
    return (
      <Empty title={missing && study === null ? `There is no study ${name}` : `The study ${name} was deleted`}>
        <Link to="/studies">To the studies</Link>
      </Empty>
    );
  }
  if (study === null || !complete) {
    return asked.error === null ? <Loading what={name} /> : <Problem error={asked.error} again={() => void asked.refetch()} />;
  }
  return <StudyView study={study} trials={trials} connection={connection} />;
}

function StudyView({ study, trials, connection }: { study: Study; trials: Trial[]; connection: Connection }) {
  const navigate = useNavigate();
  return (
    <>
      <div className={styles.head}>
        <div className={styles.title}>
          <h1>{study.name}</h1>
          <StateBadge state={study.state} />
          <ConnectionState connection={connection} study={study} />
        </div>
        <StudyActions study={study} onDeleted={() => void navigate({ to: "/studies" })} />
      </div>
      {study.state_reason === "" ? null : <p className={styles.reason}>{study.state_reason}</p>}
      <Facts study={study} />
      {hasBegun(study) ? null : <FirstTrial study={study} />}
      {study.trial_count === 0 ? null : <Results study={study} trials={trials} />}
    </>
  );
}

/** Whether a trial was ever started. */
function hasBegun(study: Study): boolean {
  return study.finished_count + study.active_count > 0;
}

function Results({ study, trials }: { study: Study; trials: Trial[] }) {
  const [opened, open] = useState<number | null>(null);
  const finished = useThrottled(study.finished_count, 1000);
  const { data: analysis } = useQuery(analysisQuery(study.name, study.created_at, finished, study.state));
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  return (
    <>
      {hasBegun(study) ? (
        <>
          <div className={styles.columns}>
            <TrajectoryChart spec={study.spec} trials={trials} objectives={analysis?.objectives} onPick={open} />
            <Card title="Gain against the default">{analysis === undefined ? null : <Gain analysis={analysis} study={study} />}</Card>
          </div>
          {analysis === undefined ? null : <BestConfiguration spec={study.spec} analysis={analysis} />}
        </>
      ) : null}
      <TrialTable
        study={study.name}
        spec={study.spec}
        trials={trials}
        standard={analysis?.default_params}
        best={best}
        opened={opened}
        onOpen={open}
      />
    </>
  );
}

function Facts({ study }: { study: Study }) {
  const { algorithm, budget, execution, space } = study.spec;
  const waiting = study.requested_count;
  const open = [
    study.active_count > 0 ? `${study.active_count} running` : "",
    waiting > 0 ? `${waiting} waiting` : "",
    study.exhausted ? "space exhausted" : "",
  ].filter((text) => text !== "");
  return (
    <dl className={styles.facts}>
      <div>
        <dt>Trials</dt>
        <dd>
          <Progress done={study.finished_count} of={budget?.max_trials} unit="done" />
          {open.length === 0 ? null : <span className={styles.soft}> {open.join(", ")}</span>}
        </dd>
      </div>
      {budget?.max_seconds ? (
        <div>
          <dt>Time budget</dt>
          <dd>{formatDuration(budget.max_seconds)}</dd>
        </div>
      ) : null}
      <div>
        <dt>Algorithm</dt>
        <dd title={study.algorithm_choice?.reason}>
          {algorithm?.name}
          {study.algorithm_choice === null ? null : <span className={styles.soft}> chose {study.algorithm_choice.name}</span>}
        </dd>
      </div>
      <div>
        <dt>Space</dt>
        <dd>
          {space.parameters.length} {space.parameters.length === 1 ? "parameter" : "parameters"}
          {space.constraints?.length ? `, ${space.constraints.length} ${space.constraints.length === 1 ? "constraint" : "constraints"}` : ""}
        </dd>
      </div>
      {execution ? (
        <div>
          <dt>Runs on agents</dt>
          <dd>
            {execution.component}
            {execution.application ? ` / ${execution.application}` : ""}
            {execution.parallelism ? `, ${execution.parallelism} at a time` : ""}
            {execution.placement ? (
              <span className={styles.soft}>
                {" "}
                {execution.placement.exclusive ? "each alone on its node" : "sharing nodes"}
                {execution.placement.spread ? ", replicates on different nodes" : ""}
              </span>
            ) : null}
          </dd>
        </div>
      ) : null}
      <div>
        <dt>Created</dt>
        <dd>
          <Ago at={study.created_at} />
        </dd>
      </div>
    </dl>
  );
}

/** What has to happen for the first trial to come. */
function FirstTrial({ study }: { study: Study }) {
  const { execution } = study.spec;
  return (
    <div className={styles.panel}>
      {execution ? (
        <Empty title={study.requested_count > 0 ? "Waiting for an agent" : "No trials yet"}>
          <p>
            {study.requested_count > 0 ? "The first trials are ready. They run" : "The first suggestion is being computed. Trials run"} as soon as
            an <Link to="/agents">agent</Link> with the component <b>{execution.component}</b> is online and free.
          </p>
        </Empty>
      ) : (
        <Empty title="No trials yet">
          <p>This study waits to be asked. From Python:</p>
          <Code>{`study = client.get_study("${study.name}")
trial = study.ask(1)[0]
study.tell(trial, {${study.spec.objectives.map(({ metric }) => `"${metric}": …`).join(", ")}})`}</Code>
        </Empty>
      )}
    </div>
  );
}
