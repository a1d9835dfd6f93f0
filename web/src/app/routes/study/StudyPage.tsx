import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect } from "react";
import { tabsOf, type StudySearch } from "@/app/addresses";
import styles from "@/app/routes/pages.module.css";
import { TITLES } from "@/app/titles";
import { StateBadge, Tags } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Empty, Loading, Problem } from "@/components/Message";
import { Popover } from "@/components/Popover";
import { Tabs } from "@/components/Select";
import { StudyRecord } from "@/features/matching/StudyRecord";
import { NoteCard } from "@/features/notes/NoteCard";
import { analysisQuery, studyQuery } from "@/features/studies/api";
import { ConnectionState, Standing } from "@/features/studies/Standing";
import { useStudyFeed, type Connection } from "@/features/studies/feed";
import { StudyActions } from "@/features/studies/StudyActions";
import { Timeline } from "@/features/trials/Timeline";
import type { TrajectoryView } from "@/features/trials/TrajectoryChart";
import { ApiError, type Study, type Trial } from "@/lib/api/client";
import { useLast, useThrottled } from "@/lib/clock";
import { formatNumber } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import { AnalysisTab, TradeOffsTab } from "./AnalysisTabs";
import { FirstTrial, hasBegun } from "./FirstTrial";
import { Overview } from "./Overview";
import { StudyFacts } from "./StudyFacts";
import { TrialsTab } from "./TrialsTab";

// The writer of study files is loaded with the tab that shows one.
const AsFile = lazy(() => import("@/features/planning/AsFile"));

const route = getRouteApi("/signed-in/studies/$name");

export function StudyPage() {
  const { name } = route.useParams();
  useTitle(name);
  // The key discards the state of the page when another study is opened.
  return <StudyByName key={name} name={name} />;
}

function StudyByName({ name }: { name: string }) {
  const { study, trials, complete, sampled, connection } = useStudyFeed(name);
  // The stream cannot say why it fails. This request does, at first and after each break.
  const asked = useQuery({ ...studyQuery(name), enabled: study === null || connection === "waiting", refetchInterval: connection === "waiting" ? 5000 : false });
  const missing = asked.error instanceof ApiError && asked.error.status === 404;

  if (missing || connection === "gone") {
    return (
      <Empty title={missing && study === null ? t`There is no study ${name}` : t`The study ${name} was deleted`}>
        <Link to="/studies">{t`Go to studies`}</Link>
      </Empty>
    );
  }
  if (study === null || !complete) {
    return asked.error === null ? <Loading what={name} /> : <Problem error={asked.error} again={() => void asked.refetch()} />;
  }
  return <StudyView study={study} trials={trials} sampled={sampled} connection={connection} />;
}

// With more trials than this, plots are redrawn once a second at most.
const MANY = 300;
// With more finished trials than this, the analysis is fetched every ten seconds at most.
const LONG = 5000;

interface ViewProps {
  study: Study;
  trials: Trial[];
  sampled: boolean;
  connection: Connection;
}

function StudyView({ study, trials: latest, sampled, connection }: ViewProps) {
  const navigate = useNavigate();
  const search = route.useSearch();
  const change = route.useNavigate();
  const { tab: wanted = "overview" } = search;
  const may = useMay();
  const mayTune = may("study.update");
  const slow = useThrottled(latest, 1000);
  const trials = latest.length > MANY ? slow : latest;
  const finished = useThrottled(study.finished_count, study.finished_count > LONG ? 10_000 : 1000);
  const asked = useQuery({ ...analysisQuery(study.name, study.created_at, finished, study.state, study.space_version), enabled: study.trial_count > 0 });
  // Keep the last analysis while the connection is broken.
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
  const onSearch = useCallback(
    (changes: Partial<StudySearch>) => void change({ search: (before) => ({ ...before, ...changes }), replace: true, resetScroll: false }),
    [change],
  );
  const onMetric = useCallback((metric: string | undefined) => onSearch({ metric }), [onSearch]);
  const onView = useCallback(({ metric, show, across, scale }: TrajectoryView) => onSearch({ metric, show, across, scale }), [onSearch]);
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
            <Link to="/new" search={{ clone: study.name }} className={styles.secondary} title={t`Create a new study with the same settings`}>
              {t`Clone`}
            </Link>
          ) : null}
          <ExportMenu study={study} />
          {mayTune ? <StudyActions study={study} connection={connection} onDeleted={() => void navigate({ to: "/studies" })} /> : null}
        </div>
      </div>
      {study.state_reason === "" ? null : <p className={styles.reason}>{reasonText(study.state_reason, study.state_reason_data)}</p>}
      <Standing study={study} />
      <StudyFacts study={study} />
      {may("record.read") && study.spec.execution ? (
        <StudyRecord
          study={study}
          link={({ id }) => (
            <Link to="/matching/records/$id" params={{ id }}>
              {t`Record ${id}`}
            </Link>
          )}
        />
      ) : null}
      <Tabs label={t`Study`}>
        {shown.map((one) => (
          <Link
            key={one}
            to="/studies/$name"
            params={{ name: study.name }}
            search={{ ...search, tab: one === "overview" ? undefined : one }}
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
          {sampled && (tab === "analysis" || tab === "trade-offs") ? (
            <p className={styles.note}>
              {t`The charts show a uniform sample of ${formatNumber(trials.length)} of ${plural(study.trial_count, { one: "# trial", other: "# trials" })}.`}
            </p>
          ) : null}
          {isError && analysis === undefined && connection === "live" ? <Problem error={asked.error} again={() => void refetch()} /> : null}
          {tab === "overview" ? <Overview study={study} trials={trials} analysis={analysis} sampled={sampled} view={search} onView={onView} mayTune={mayTune} openTrial={openTrial} link={link} /> : null}
          {tab === "trials" ? <TrialsTab study={study} trials={trials} sampled={sampled} analysis={analysis} finished={finished} mayTune={mayTune} search={search} onSearch={onSearch} link={link} /> : null}
          {tab === "analysis" ? <AnalysisTab study={study} trials={trials} analysis={analysis} finished={finished} metric={search.metric} onMetric={onMetric} /> : null}
          {tab === "trade-offs" ? <TradeOffsTab study={study} trials={trials} analysis={analysis} finished={finished} onPick={openTrial} /> : null}
          {tab === "timeline" ? <Timeline study={study} trials={trials} sampled={sampled} onPick={openTrial} /> : null}
        </>
      )}
      {tab === "overview" ? (
        <NoteCard
          study={study.name}
          revision={study.revision}
          mayWrite={may("study.update")}
          link={(number) => (
            <Link to="/studies/$name/trials/$number" params={{ name: study.name, number: String(number) }}>
              {t`Trial ${number}`}
            </Link>
          )}
        />
      ) : null}
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

/** A menu that downloads the study's data or opens its report. */
export function ExportMenu({ study }: { study: Study }) {
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
          <a href={`${at}/verdict.csv`} download>
            {t`Verdict as CSV`}
          </a>
        </li>
        <li>
          <Link to="/studies/$name/report" params={{ name: study.name }}>
            {t`Printable report`}
          </Link>
        </li>
        <li className={styles.soft}>{t`To save a plot as SVG, use the button in its corner.`}</li>
      </ul>
    </Popover>
  );
}
