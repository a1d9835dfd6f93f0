import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useMemo, useState, type ReactNode } from "react";
import { StateBadge } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import { Popover } from "@/components/Popover";
import { Progress } from "@/components/Progress";
import { Tabs } from "@/components/Tabs";
import { Tags } from "@/components/Tags";
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
import { ALL, type Filter } from "@/features/trials/filter";
import { MeasureAgain } from "@/features/trials/MeasureAgain";
import { RunningTrials } from "@/features/trials/RunningTrials";
import { Timeline } from "@/features/trials/Timeline";
import { TrajectoryChart } from "@/features/trials/TrajectoryChart";
import { TrialTable } from "@/features/trials/TrialTable";
import { ApiError, type Analysis, type Study, type Trial } from "@/lib/api/client";
import { useLast, useThrottled } from "@/lib/clock";
import { formatDuration, formatNumber } from "@/lib/format";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/title";
import { tabsOf } from "../addresses";
import { TITLES } from "../titles";
import { AnalysisTab, TradeOffsTab } from "./StudyAnalysis";

import styles from "./pages.module.css";

// What writes files comes with the tab that shows one.
const AsFile = lazy(() => import("@/features/planning/AsFile"));

const route = getRouteApi("/signed-in/studies/$name");

export function StudyPage() {
  const { name } = route.useParams();
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
      <Empty title={missing && study === null ? t`There is no study ${name}` : t`The study ${name} was deleted`}>
        <Link to="/studies">{t`To the studies`}</Link>
      </Empty>
    );
  }
  if (study === null || !complete) {
    return asked.error === null ? <Loading what={name} /> : <Problem error={asked.error} again={() => void asked.refetch()} />;
  }
  return <StudyView study={study} trials={trials} sampled={sampled} connection={connection} add={add} />;
}

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
  const { tab: wanted = "overview" } = route.useSearch();
  const may = useMay();
  const mayTune = may("study.update");
  const slow = useThrottled(latest, 1000);
  const trials = latest.length > MANY ? slow : latest;
  const finished = useThrottled(study.finished_count, study.finished_count > LONG ? 10_000 : 1000);
  const asked = useQuery({ ...analysisQuery(study.name, study.created_at, finished, study.state, study.space_version), enabled: study.trial_count > 0 });
  // What was known before the connection broke is still known.
  const analysis = useLast(asked.data);
  const { isError, refetch } = asked;
  useEffect(() => {
    if (connection === "live" && isError) void refetch();
  }, [connection, isError, refetch]);
  const shown = tabsOf(study.spec);
  const tab = shown.includes(wanted) ? wanted : "overview";
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
          <Tags tags={study.tags} />
        </div>
        <div className={styles.buttons}>
          {may("study.create") ? (
            <Link to="/new" search={{ clone: study.name }} className={styles.secondary} title={t`A new study that begins as this one did`}>
              {t`Clone`}
            </Link>
          ) : null}
          <Export study={study} />
          {mayTune ? <StudyActions study={study} connection={connection} onDeleted={() => void navigate({ to: "/studies" })} /> : null}
        </div>
      </div>
      {study.state_reason === "" ? null : <p className={styles.reason}>{study.state_reason}</p>}
      <Facts study={study} />
      <Tabs label={t`Study`}>
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
            {i18n._(TITLES[one])}
          </Link>
        ))}
      </Tabs>
      {tab === "setup" ? (
        <Suspense fallback={<Loading what={t`the study file`} />}>
          <AsFile study={study} />
        </Suspense>
      ) : null}
      {hasBegun(study) || tab === "setup" ? null : <FirstTrial study={study} />}
      {study.trial_count === 0 || tab === "setup" ? null : (
        <>
          {sampled && tab !== "trials" ? (
            <p className={styles.note}>
              {t`Of ${plural(study.trial_count, { one: "# trial", other: "# trials" })}, plots show ${formatNumber(trials.length)}: the extremes of each stretch, all that were the best so far, and the latest. A stretch that you zoom into (by the slider, or with Ctrl and the wheel; dragging moves it) is shown in full.`}
            </p>
          ) : null}
          {isError && analysis === undefined && connection === "live" ? <Problem error={asked.error} again={() => void refetch()} /> : null}
          {tab === "overview" ? <Overview study={study} trials={trials} analysis={analysis} sampled={sampled} add={add} mayTune={mayTune} openTrial={openTrial} link={link} /> : null}
          {tab === "trials" ? <TrialsTab study={study} trials={trials} sampled={sampled} analysis={analysis} finished={finished} mayTune={mayTune} link={link} /> : null}
          {tab === "analysis" ? <AnalysisTab study={study} trials={trials} analysis={analysis} finished={finished} /> : null}
          {tab === "trade-offs" ? <TradeOffsTab study={study} trials={trials} analysis={analysis} finished={finished} onPick={openTrial} /> : null}
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
      <RunningTrials
        study={study.name}
        trials={trials}
        running={study.active_count}
        waiting={study.requested_count}
        standard={analysis?.default_params}
        mayStop={mayTune}
        link={link}
      />
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
            <Card title={t`Gain against the default`}>{analysis === undefined ? null : <Gain analysis={analysis} study={study} />}</Card>
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
  sampled: boolean;
  analysis: Analysis | undefined;
  finished: number;
  mayTune: boolean;
  link: (number: number, text: string) => ReactNode;
}

function TrialsTab({ study, trials, sampled, analysis, finished, mayTune, link }: TrialsProps) {
  const [opened, open] = useState<number | null>(null);
  const [filter, setFilter] = useState<Filter>(ALL);
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  return (
    <>
      <Failures study={study.name} trials={trials} sampled={sampled} finished={finished} onPick={({ state, reason }) => setFilter({ state, reason })} />
      <TrialTable
        study={study.name}
        spec={study.spec}
        trials={trials}
        standard={analysis?.default_params}
        best={best}
        opened={opened}
        onOpen={open}
        sampled={sampled}
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
    <Popover label={t`Export`} trigger={<Button>{t`Export`}</Button>}>
      <ul className={styles.menu}>
        <li>
          <a href={`${at}/trials.csv`} download>
            {t`Trials as CSV`}
          </a>
        </li>
        <li>
          <a href={`${at}/trials.json`} download>
            {t`Study and trials as JSON`}
          </a>
        </li>
        <li>
          <Link to="/studies/$name/report" params={{ name: study.name }}>
            {t`Report to print`}
          </Link>
        </li>
        <li className={styles.soft}>{t`Each plot is saved as SVG at its corner.`}</li>
      </ul>
    </Popover>
  );
}

function Facts({ study }: { study: Study }) {
  const { algorithm, budget, execution, space } = study.spec;
  const waiting = study.requested_count;
  const open = [
    study.active_count > 0 ? t`${formatNumber(study.active_count)} running` : "",
    waiting > 0 ? t`${formatNumber(waiting)} waiting` : "",
    study.exhausted ? t`space exhausted` : "",
  ].filter((text) => text !== "");
  return (
    <dl className={styles.facts}>
      <div>
        <dt>{t`Trials`}</dt>
        <dd>
          <Progress done={study.finished_count} of={budget?.max_trials} unit={t`done`} />
          {open.length === 0 ? null : <span className={styles.soft}> {open.join(", ")}</span>}
        </dd>
      </div>
      {budget?.max_seconds ? (
        <div>
          <dt>{t`Time budget`}</dt>
          <dd>{formatDuration(budget.max_seconds)}</dd>
        </div>
      ) : null}
      {budget?.max_node_hours ? (
        <div>
          <dt>{t`Node-hours`}</dt>
          <dd>{t`at most ${formatNumber(budget.max_node_hours)}`}</dd>
        </div>
      ) : null}
      <div>
        <dt>{t`Algorithm`}</dt>
        <dd title={study.algorithm_choice?.reason}>
          {algorithm?.name}
          {study.algorithm_choice === null ? null : <span className={styles.soft}> {t`chose ${study.algorithm_choice.name}`}</span>}
        </dd>
      </div>
      <div>
        <dt>{t`Space`}</dt>
        <dd>
          {plural(space.parameters.length, { one: "# parameter", other: "# parameters" })}
          {space.constraints?.length ? `, ${plural(space.constraints.length, { one: "# constraint", other: "# constraints" })}` : ""}
        </dd>
      </div>
      {study.started_from.length === 0 ? null : (
        <div>
          <dt>{t`Started from`}</dt>
          <dd>
            {study.started_from.map(({ study: earlier, taken }) => (
              <span key={earlier}>
                <Link to="/studies/$name" params={{ name: earlier }}>
                  {earlier}
                </Link>{" "}
                <span className={styles.soft}>{plural(taken, { one: "# configuration", other: "# configurations" })}</span>
              </span>
            ))}
          </dd>
        </div>
      )}
      {execution ? (
        <div>
          <dt>{t`Runs on agents`}</dt>
          <dd>
            {execution.component}
            {execution.application ? ` / ${execution.application}` : ""}
            {execution.parallelism ? t`, ${execution.parallelism} at a time` : ""}
            {execution.placement ? (
              <span className={styles.soft}>
                {" "}
                {execution.placement.exclusive ? t`each alone on its node` : t`sharing nodes`}
                {execution.placement.spread ? t`, replicates on different nodes` : ""}
              </span>
            ) : null}
          </dd>
        </div>
      ) : null}
      <div>
        <dt>{t`Created`}</dt>
        <dd>
          <Ago at={study.created_at} />
          {study.owner === "" ? null : <span className={styles.soft}>{t`by ${study.owner}`}</span>}
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
        <Empty title={study.requested_count > 0 ? t`Waiting for an agent` : t`No trials yet`}>
          <p>
            {study.requested_count > 0 ? t`The first trials are ready.` : t`The first suggestion is being computed.`}{" "}
            <Trans>
              Trials run as soon as an <Link to="/agents">agent</Link> with the component <b>{execution.component}</b> is online and free.
            </Trans>
          </p>
        </Empty>
      ) : (
        <Empty title={t`No trials yet`}>
          <p>{t`This study waits to be asked. From Python:`}</p>
          <Code>{`study = client.get_study("${study.name}")
trial = study.ask(1)[0]
study.tell(trial, {${study.spec.objectives.map(({ metric }) => `"${metric}": …`).join(", ")}})`}</Code>
        </Empty>
      )}
    </div>
  );
}
