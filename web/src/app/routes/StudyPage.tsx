import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, useState, type ReactNode } from "react";
import { StateBadge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Popover } from "@/components/Popover";
import { Progress } from "@/components/Progress";
import { Tabs } from "@/components/Tabs";
import { Ago } from "@/components/Time";
import { analysisQuery, studyQuery } from "@/features/studies/api";
import { BestConfiguration } from "@/features/studies/BestConfiguration";
import { ConnectionState } from "@/features/studies/ConnectionState";
import type { Connection } from "@/features/studies/feed";
import { Gain } from "@/features/studies/Gain";
import { StudyActions } from "@/features/studies/StudyActions";
import { useStudyFeed } from "@/features/studies/useStudyFeed";
import { fetchStretch } from "@/features/trials/api";
import { Failures } from "@/features/trials/Failures";
import { MeasureAgain } from "@/features/trials/MeasureAgain";
import { RunningTrials } from "@/features/trials/RunningTrials";
import { Timeline } from "@/features/trials/Timeline";
import { TrajectoryChart } from "@/features/trials/TrajectoryChart";
import { TrialTable, type Filter } from "@/features/trials/TrialTable";
import { ApiError, type Analysis, type Study, type Trial } from "@/lib/api/client";
import { useThrottled } from "@/lib/clock";
import { formatDuration } from "@/lib/format";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import { STUDY_TABS, studyRoute, type StudyTab } from "../router";
import { AnalysisTab, TradeOffsTab } from "./StudyAnalysis";

import styles from "./pages.module.css";

export function StudyPage() {
  const { name } = studyRoute.useParams();
  useTitle(name);
  // A study of another name is another page: nothing of the one before may stay.
  return <StudyByName key={name} name={name} />;
}

function StudyByName({ name }: { name: string }) {
  const { study, trials, complete, sampled, connection, add } = useStudyFeed(name);
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
  return <StudyView study={study} trials={trials} sampled={sampled} connection={connection} add={add} />;
}

const TITLES: Record<StudyTab, string> = { overview: "Overview", trials: "Trials", analysis: "Analysis", "trade-offs": "Trade-offs", timeline: "Timeline" };
// From so many trials on pictures follow once a second, whatever comes in meanwhile.
const MANY = 300;
// From so many on results are summed up anew every ten seconds.
const LONG = 5000;

interface ViewProps {
  study: Study;
  trials: Trial[];
  sampled: boolean;
  connection: Connection;
  add: (trials: Trial[]) => void;
}

function StudyView({ study, trials: latest, sampled, connection, add }: ViewProps) {
  const navigate = useNavigate();
  const { tab = "overview" } = studyRoute.useSearch();
  const mayTune = useMay()("study.update");
  const slow = useThrottled(latest, 1000);
  const trials = latest.length > MANY ? slow : latest;
  const finished = useThrottled(study.finished_count, study.finished_count > LONG ? 10_000 : 1000);
  const { data: analysis } = useQuery({ ...analysisQuery(study.name, study.created_at, finished, study.state), enabled: study.trial_count > 0 });
  const shown = STUDY_TABS.filter((one) => one !== "trade-offs" || study.spec.objectives.length > 1);
  const openTrial = useCallback(
    (number: number) => void navigate({ to: "/studies/$name/trials/$number", params: { name: study.name, number: String(number) } }),
    [navigate, study.name],
  );
  const link = useCallback((number: number, text: string) => <TrialLink study={study.name} number={number} text={text} />, [study.name]);
  return (
    <>
      <div className={styles.head}>
        <div className={styles.title}>
          <h1>{study.name}</h1>
          <StateBadge state={study.state} />
          <ConnectionState connection={connection} study={study} />
        </div>
        <div className={styles.buttons}>
          <Export study={study} />
          {mayTune ? <StudyActions study={study} onDeleted={() => void navigate({ to: "/studies" })} /> : null}
        </div>
      </div>
      {study.state_reason === "" ? null : <p className={styles.reason}>{study.state_reason}</p>}
      <Facts study={study} />
      <Tabs label="Study">
        {shown.map((one) => (
          <Link
            key={one}
            to="/studies/$name"
            params={{ name: study.name }}
            search={{ tab: one === "overview" ? undefined : one }}
            aria-current={one === tab ? "page" : undefined}
            activeProps={{}}
            activeOptions={{ exact: true, includeSearch: true }}
          >
            {TITLES[one]}
          </Link>
        ))}
      </Tabs>
      {hasBegun(study) ? null : <FirstTrial study={study} />}
      {study.trial_count === 0 ? null : (
        <>
          {sampled && tab !== "trials" ? (
            <p className={styles.note}>
              Of {study.trial_count.toLocaleString("en")} trials, plots show {trials.length.toLocaleString("en")}: the extremes of each stretch, all that were the best so far, and
              the latest. A stretch that you zoom into is shown in full.
            </p>
          ) : null}
          {tab === "overview" ? <Overview study={study} trials={trials} analysis={analysis} sampled={sampled} add={add} mayTune={mayTune} openTrial={openTrial} link={link} /> : null}
          {tab === "trials" ? <TrialsTab study={study} trials={trials} analysis={analysis} finished={finished} mayTune={mayTune} link={link} /> : null}
          {tab === "analysis" ? <AnalysisTab study={study} trials={trials} analysis={analysis} finished={finished} /> : null}
          {tab === "trade-offs" && study.spec.objectives.length > 1 ? (
            <TradeOffsTab study={study} trials={trials} analysis={analysis} finished={finished} onPick={openTrial} />
          ) : null}
          {tab === "timeline" ? <Timeline study={study.name} trials={trials} onPick={openTrial} /> : null}
        </>
      )}
    </>
  );
}

function TrialLink({ study, number, text }: { study: string; number: number; text: string }) {
  return (
    <Link to="/studies/$name/trials/$number" params={{ name: study, number: String(number) }} preload={false}>
      {text}
    </Link>
  );
}

/** Whether a trial was ever started. */
function hasBegun(study: Study): boolean {
  return study.finished_count + study.active_count > 0;
}

interface OverviewProps {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  sampled: boolean;
  add: (trials: Trial[]) => void;
  mayTune: boolean;
  openTrial: (number: number) => void;
  link: (number: number, text: string) => ReactNode;
}

function Overview({ study, trials, analysis, sampled, add, mayTune, openTrial, link }: OverviewProps) {
  const { name } = study;
  const look = useCallback((first: number, last: number) => void fetchStretch(name, first, last).then(add, () => undefined), [name, add]);
  const open = study.state === "ACTIVE" && study.search_end_reason === "";
  return (
    <>
      <RunningTrials study={study.name} trials={trials} standard={analysis?.default_params} mayStop={mayTune} link={link} />
      {hasBegun(study) ? (
        <>
          <div className={styles.columns}>
            <TrajectoryChart
              study={study.name}
              spec={study.spec}
              trials={trials}
              objectives={analysis?.objectives}
              onPick={openTrial}
              onRange={sampled ? look : undefined}
            />
            <Card title="Gain against the default">{analysis === undefined ? null : <Gain analysis={analysis} study={study} />}</Card>
          </div>
          {analysis === undefined ? null : (
            <BestConfiguration
              spec={study.spec}
              analysis={analysis}
              {...(mayTune && open ? { again: ({ params }: { params: Trial["params"] }) => <MeasureAgain study={study.name} params={params} /> } : {})}
            />
          )}
        </>
      ) : null}
    </>
  );
}

interface TrialsProps {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  finished: number;
  mayTune: boolean;
  link: (number: number, text: string) => ReactNode;
}

function TrialsTab({ study, trials, analysis, finished, mayTune, link }: TrialsProps) {
  const [opened, open] = useState<number | null>(null);
  const [filter, setFilter] = useState<Filter>({ state: "", reason: "" });
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  return (
    <>
      <Failures study={study.name} finished={finished} onPick={({ state, reason }) => setFilter({ state, reason })} />
      <TrialTable
        study={study.name}
        spec={study.spec}
        trials={trials}
        standard={analysis?.default_params}
        best={best}
        opened={opened}
        onOpen={open}
        total={study.trial_count}
        revision={study.revision}
        filter={filter}
        onFilter={setFilter}
        mayStop={mayTune}
        link={link}
      />
    </>
  );
}

/** What can be taken away. */
function Export({ study }: { study: Study }) {
  const at = `/api/v1/studies/${encodeURIComponent(study.name)}`;
  return (
    <Popover label="Export" trigger={<Button>Export</Button>}>
      <ul className={styles.menu}>
        <li>
          <a href={`${at}/trials.csv`} download>
            Trials as CSV
          </a>
        </li>
        <li>
          <a href={`${at}/trials.json`} download>
            Study and trials as JSON
          </a>
        </li>
        <li>
          <Link to="/studies/$name/report" params={{ name: study.name }}>
            Report to print
          </Link>
        </li>
        <li className={styles.soft}>Each plot is saved as SVG at its corner.</li>
      </ul>
    </Popover>
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
