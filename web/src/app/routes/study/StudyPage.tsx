import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useMemo } from "react";
import { tabsOf, type StudySearch } from "@/app/addresses";
import styles from "@/app/routes/pages.module.css";
import { TITLES } from "@/app/titles";
import { StateBadge, Tags } from "@/components/Badge";
import { Button } from "@/components/Button";
import { Empty, Loading, Problem } from "@/components/Message";
import { Tabs } from "@/components/Select";
import { StudyRecord } from "@/features/matching/StudyRecord";
import { NoteCard } from "@/features/notes/NoteCard";
import { SAMPLE, SampleNote } from "@/features/planning/SampleData";
import { analysisQuery, studyQuery } from "@/features/studies/api";
import { ConnectionState, Standing } from "@/features/studies/Standing";
import { useStudyFeed, type Connection } from "@/features/studies/feed";
import { StudyActions } from "@/features/studies/StudyActions";
import { linked } from "@/features/trials/linked";
import { conditionText } from "@/features/trials/tableQuery";
import { Timeline } from "@/features/trials/Timeline";
import type { TrajectoryView } from "@/features/trials/TrajectoryChart";
import { ApiError, identify, type Study, type Trial } from "@/lib/api/client";
import { useLast, useThrottled } from "@/lib/clock";
import { formatList, formatNumber } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { useMay } from "@/lib/session";
import { useTitle } from "@/lib/browser";
import { AnalysisTab, TradeOffsTab } from "./AnalysisTabs";
import { FirstTrial, hasBegun } from "./FirstTrial";
import { LiveTab } from "./LiveTab";
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

const NO_CONDITIONS: readonly string[] = [];

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
  const { name, uid } = study;
  useEffect(() => identify(name, uid), [name, uid]);
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
  const onView = useCallback(({ metric, show, across, scale, range }: TrajectoryView) => onSearch({ metric, show, across, scale, range }), [onSearch]);
  const onShow = useCallback((where: string[]) => onSearch({ tab: "trials", where, page: undefined }), [onSearch]);
  const onPoint = useCallback((point: number | undefined) => onSearch({ point }), [onSearch]);
  const link = useCallback((number: number, text: string) => <TrialLink study={study.name} number={number} text={text} />, [study.name]);
  const where = search.where ?? NO_CONDITIONS;
  const chosen = useMemo(() => linked(trials, where, new Date()), [trials, where]);
  const isChosen = chosen.length < trials.length;
  const record = may("record.read") && study.spec.execution ? (
        <StudyRecord
          study={study}
          link={({ id }) => (
            <Link to="/matching/records/$id" params={{ id }}>
              {t`Record ${id}`}
            </Link>
          )}
        />
      ) : null;
  return (
    <>
      <div className={`${styles.head} ${styles.studyHead}`}>
        <div className={styles.title}>
          <h1>{study.name}</h1>
          <StateBadge state={study.state} />
          <ConnectionState connection={connection} study={study} />
          <Tags tags={study.tags} />
        </div>
        <div className={styles.buttons}>
          <StudyActions
            study={study}
            connection={connection}
            mayTune={mayTune}
            mayCreate={may("study.create")}
            clone={(text) => (
              <Link to="/new" search={{ clone: study.name }} title={t`Create a new study with the same settings`}>
                {text}
              </Link>
            )}
            report={(text) => (
              <Link to="/studies/$name/report" params={{ name: study.name }}>
                {text}
              </Link>
            )}
            onDeleted={() => void navigate({ to: "/studies" })}
          />
        </div>
      </div>
      {study.state_reason === "" ? null : <p className={styles.reason}>{reasonText(study.state_reason, study.state_reason_data)}</p>}
      {study.tags.includes(SAMPLE) ? <SampleNote study={study.name} onDeleted={() => void navigate({ to: "/studies" })} /> : null}
      <Standing study={study} />
      <StudyFacts study={study} />
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
      {tab === "live" ? <LiveTab study={study.name} link={link} /> : null}
      {hasBegun(study) || tab === "setup" || tab === "live" ? null : <FirstTrial study={study} />}
      {study.trial_count === 0 || tab === "setup" ? null : (
        <>
          {sampled && (tab === "analysis" || tab === "trade-offs") ? (
            <p className={styles.note}>
              {t`The charts show a uniform sample of ${formatNumber(trials.length)} of ${plural(study.trial_count, { one: "# trial", other: "# trials" })}.`}
            </p>
          ) : null}
          {isChosen && (tab === "analysis" || tab === "trade-offs" || tab === "timeline") ? (
            <p className={styles.note} role="status">
              {t`The plots of trials show ${formatNumber(chosen.length)} of ${plural(trials.length, { one: "# trial", other: "# trials" })}: those that meet ${formatList(where.map(conditionText), "conjunction")}. Models use all trials.`}{" "}
              <Button small onClick={() => onSearch({ where: undefined })}>{t`Show all trials`}</Button>
            </p>
          ) : null}
          {isError && analysis === undefined && connection === "live" ? <Problem error={asked.error} again={() => void refetch()} /> : null}
          {tab === "overview" ? <Overview study={study} trials={trials} analysis={analysis} sampled={sampled} view={search} onView={onView} mayTune={mayTune} point={search.point} onPoint={onPoint} record={record} onShow={onShow} openTrial={openTrial} link={link} /> : null}
          {tab === "trials" ? <TrialsTab study={study} trials={trials} sampled={sampled} analysis={analysis} finished={finished} mayTune={mayTune} search={search} onSearch={onSearch} link={link} /> : null}
          {tab === "analysis" ? <AnalysisTab study={study} trials={chosen} analysis={analysis} finished={finished} metric={search.metric} onMetric={onMetric} chosen={search} onChoose={onSearch} onPick={openTrial} /> : null}
          {tab === "trade-offs" ? <TradeOffsTab study={study} trials={chosen} analysis={analysis} finished={finished} onPick={openTrial} /> : null}
          {tab === "timeline" ? <Timeline study={study} trials={chosen} sampled={sampled} onPick={openTrial} /> : null}
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
