import { t } from "@lingui/core/macro";
import { useCallback, useMemo, useState, type ReactNode } from "react";
import { Card } from "@/components/Card";
import { Loading } from "@/components/Message";
import { BestConfiguration } from "@/features/studies/BestConfiguration";
import { ContextTable } from "@/features/studies/ContextTable";
import { CheckButton } from "@/features/studies/FinalCheck";
import { Effects } from "@/features/studies/Effects";
import { Gain } from "@/features/studies/Gain";
import { ParetoMembers } from "@/features/studies/ParetoMembers";
import { fetchInterval } from "@/features/trials/api";
import { MeasureAgain } from "@/features/trials/MeasureAgain";
import { RunningTrials } from "@/features/trials/RunningTrials";
import { TrajectoryChart, type TrajectoryView } from "@/features/trials/TrajectoryChart";
import { thinned } from "@/features/trials/trajectory";
import type { Analysis, Study, Trial } from "@/lib/api/client";
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
  openTrial: (number: number) => void;
  link: (number: number, text: string) => ReactNode;
}

/** Show the running trials, the trajectory, the gain and the best configuration of a study. */
export function Overview({ study, trials, analysis, sampled, view, onView, mayTune, openTrial, link }: Props) {
  const { name } = study;
  // The trials of the interval that the user has zoomed into: all, or a denser sample.
  const [near, setNear] = useState<Trial[]>([]);
  const look = useCallback((first: number, last: number) => void fetchInterval(name, first, last, MOST).then(setNear, () => undefined), [name]);
  const known = useMemo(() => (sampled ? merged(trials, near) : trials), [sampled, trials, near]);
  const drawn = useMemo(() => (sampled ? thinned(trials, study.trial_count, MOST, near) : null), [sampled, trials, study.trial_count, near]);
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  const open = study.state === "ACTIVE" && study.search_end_reason === "";
  return (
    <>
      {hasBegun(study) && analysis === undefined ? <Loading what={t`results`} /> : null}
      {analysis === undefined ? null : <ContextTable rows={analysis.contexts} spec={study.spec} />}
      {hasBegun(study) && analysis !== undefined && analysis.contexts.length === 0 ? (
        <div className={styles.answer}>
          <Card title={t`Gain over the default`} actions={mayTune && analysis.best.length > 0 ? <CheckButton study={study} /> : undefined}>
            <Gain analysis={analysis} study={study} />
          </Card>
          <BestConfiguration
            spec={study.spec}
            analysis={analysis}
            actions={(best) => (
              <>
                {mayTune && open ? <MeasureAgain study={study.name} params={best.params} /> : null}
                <UseConfiguration study={study} best={best} standard={analysis.default_params} />
              </>
            )}
          />
        </div>
      ) : null}
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
          />
        </>
      ) : null}
    </>
  );
}

/** Return the trials of both lists by number, each once. */
function merged(trials: readonly Trial[], more: readonly Trial[]): Trial[] {
  const known = new Map([...more, ...trials].map((trial) => [trial.number, trial]));
  return [...known.values()].sort((a, b) => a.number - b.number);
}
