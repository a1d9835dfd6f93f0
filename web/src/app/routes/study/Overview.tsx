import { t } from "@lingui/core/macro";
import { useCallback, type ReactNode } from "react";
import { Card } from "@/components/Card";
import { BestConfiguration } from "@/features/studies/BestConfiguration";
import { Effects } from "@/features/studies/Effects";
import { Gain } from "@/features/studies/Gain";
import { ParetoMembers } from "@/features/studies/ParetoMembers";
import { fetchInterval } from "@/features/trials/api";
import { MeasureAgain } from "@/features/trials/MeasureAgain";
import { RunningTrials } from "@/features/trials/RunningTrials";
import { TrajectoryChart } from "@/features/trials/TrajectoryChart";
import type { Analysis, Study, Trial } from "@/lib/api/client";
import styles from "../pages.module.css";
import { hasBegun } from "./hasBegun";

interface Props {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  sampled: boolean;
  add: (trials: Trial[]) => void;
  mayTune: boolean;
  openTrial: (number: number) => void;
  link: (number: number, text: string) => ReactNode;
}

/** Show the running trials, the trajectory, the gain and the best configuration of a study. */
export function Overview({ study, trials, analysis, sampled, add, mayTune, openTrial, link }: Props) {
  const { name } = study;
  const look = useCallback((first: number, last: number) => void fetchInterval(name, first, last).then(add, () => undefined), [name, add]);
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
              study={study}
              trials={trials}
              objectives={analysis?.objectives}
              onPick={openTrial}
              onRange={sampled ? look : undefined}
            />
            <Card title={t`Gain over the default`}>{analysis === undefined ? null : <Gain analysis={analysis} study={study} />}</Card>
          </div>
          {analysis?.pareto_verdict ? <ParetoMembers verdict={analysis.pareto_verdict} spec={study.spec} standard={analysis.default_params} /> : null}
          {analysis?.verdict?.effects ? <Effects effects={analysis.verdict.effects} /> : null}
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
