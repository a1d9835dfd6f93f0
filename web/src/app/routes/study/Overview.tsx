import { t } from "@lingui/core/macro";
import { useCallback, useMemo, useState, type ReactNode } from "react";
import { Card } from "@/components/Card";
import { Loading } from "@/components/Message";
import { FrontChart } from "@/features/analysis/FrontChart";
import { BestConfiguration } from "@/features/studies/BestConfiguration";
import { ContextTable } from "@/features/studies/ContextTable";
import { CheckButton } from "@/features/studies/FinalCheck";
import { NextSteps } from "@/features/studies/NextSteps";
import { pointOf } from "@/features/studies/points";
import { Effects } from "@/features/studies/Effects";
import { Gain } from "@/features/studies/Gain";
import { ParetoMembers } from "@/features/studies/ParetoMembers";
import { aggregate } from "@/features/trials/aggregate";
import { fetchInterval } from "@/features/trials/api";
import { MeasureAgain } from "@/features/trials/MeasureAgain";
import { RunningTrials } from "@/features/trials/RunningTrials";
import { TrajectoryChart, type TrajectoryView } from "@/features/trials/TrajectoryChart";
import { thinned } from "@/features/trials/trajectory";
import type { Analysis, Measured, Study, Trial } from "@/lib/api/client";
import { unitsOf } from "@/lib/space";
import styles from "../pages.module.css";
import { hasBegun } from "./FirstTrial";
import { UseConfiguration } from "./UseConfiguration";

// The service sends at most so many trials as points of a plot.
const MOST = 20_000;

interface Props {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  sampled: boolean;
  view: TrajectoryView;
  onView: (view: TrajectoryView) => void;
  mayTune: boolean;
  /** The chosen member of the Pareto front, by the number of its first trial. */
  point: number | undefined;
  onPoint: (first: number | undefined) => void;
  /** What jobs get of the study's settings. */
  record: ReactNode;
  /** Show the trials that meet conditions in the table. */
  onShow: (where: string[]) => void;
  openTrial: (number: number) => void;
  link: (number: number, text: string) => ReactNode;
}

/** Show the running trials, the trajectory, the gain and the best configuration of a study. */
export function Overview({ study, trials, analysis, sampled, view, onView, mayTune, point, onPoint, record, onShow, openTrial, link }: Props) {
  const { name } = study;
  // The trials of the interval that the user has zoomed into: all, or a denser sample.
  const [near, setNear] = useState<Trial[]>([]);
  const look = useCallback((first: number, last: number) => void fetchInterval(name, first, last, MOST).then(setNear, () => undefined), [name]);
  const known = useMemo(() => (sampled ? merged(trials, near) : trials), [sampled, trials, near]);
  const drawn = useMemo(() => (sampled ? thinned(trials, study.trial_count, MOST, near) : null), [sampled, trials, study.trial_count, near]);
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  const several = study.spec.objectives.length > 1;
  const chosen = analysis === undefined ? undefined : pointOf(analysis, point);
  const open = study.state === "ACTIVE" && study.search_end_reason === "";
  return (
    <>
      {hasBegun(study) && analysis === undefined ? <Loading what={t`results`} /> : null}
      {analysis === undefined ? null : <ContextTable rows={analysis.contexts} spec={study.spec} check={mayTune && study.state === "COMPLETED" ? (isPrimary) => <CheckButton study={study} isPrimary={isPrimary} /> : undefined} />}
      {hasBegun(study) && analysis !== undefined && analysis.contexts.length === 0 ? (
        <div className={styles.answer}>
          <Card title={t`Gain over the default`}>
            <Gain analysis={analysis} study={study} point={several ? chosen : undefined}>
              {chosen === undefined ? null : (
                <NextSteps
                  study={study}
                  analysis={analysis}
                  mayTune={mayTune}
                  shown={chosen}
                  use={(isPrimary) => <UseConfiguration study={study} best={chosen} standard={analysis.default_params} isPrimary={isPrimary} />}
                />
              )}
            </Gain>
          </Card>
          <div className={styles.column}>
            {several && analysis.best.length > 1 ? <Front study={study} trials={known} analysis={analysis} chosen={chosen} onPoint={onPoint} /> : null}
            <BestConfiguration
              spec={study.spec}
              analysis={analysis}
              point={point}
              onPoint={onPoint}
              actions={(best) => (mayTune && open ? <MeasureAgain study={study.name} params={best.params} /> : null)}
            />
          </div>
        </div>
      ) : null}
      {record}
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
          {analysis?.pareto_verdict ? <ParetoMembers verdict={analysis.pareto_verdict} spec={study.spec} standard={analysis.default_params} /> : null}
          {analysis?.verdict?.effects ? <Effects effects={analysis.verdict.effects} units={unitsOf(study.spec.space.parameters)} /> : null}
          <TrajectoryChart
            study={study}
            trials={known}
            drawn={drawn}
            best={best}
            penalties={analysis?.penalties}
            standardParams={analysis?.default_params}
            objectives={analysis?.objectives}
            view={view}
            onView={onView}
            onPick={openTrial}
            onRange={sampled ? look : undefined}
            onShow={onShow}
          />
        </>
      ) : null}
    </>
  );
}

interface FrontProps {
  study: Study;
  trials: Trial[];
  analysis: Analysis;
  chosen: Measured | undefined;
  onPoint: (first: number) => void;
}

/** Plot the first two objectives with their front. A click on a configuration of the front chooses it. */
function Front({ study, trials, analysis, chosen, onPoint }: FrontProps) {
  const { objectives } = study.spec;
  const points = useMemo(() => aggregate(trials, objectives).map(({ number, params, median, breaks }) => ({ number, params, values: median, isAllowed: breaks === null })), [trials, objectives]);
  const members = useMemo(() => analysis.best.flatMap(({ numbers }) => numbers.slice(0, 1)), [analysis]);
  const [first, second] = objectives;
  const pick = useCallback((number: number) => (members.includes(number) ? onPoint(number) : undefined), [members, onPoint]);
  if (first === undefined || second === undefined) return null;
  return (
    <Card title={t`${second.metric} against ${first.metric}`}>
      <FrontChart study={study.name} first={first} second={second} points={points} standard={analysis.default?.numbers[0]} members={objectives.length === 2 ? members : undefined} chosen={chosen?.numbers[0]} onPick={pick} />
      <p className={styles.note}>{t`Choose a point on the front: gains, settings and the address follow it.`}</p>
    </Card>
  );
}

/** Return the trials of both lists by number, each once. */
function merged(trials: readonly Trial[], more: readonly Trial[]): Trial[] {
  const known = new Map([...more, ...trials].map((trial) => [trial.number, trial]));
  return [...known.values()].sort((a, b) => a.number - b.number);
}
