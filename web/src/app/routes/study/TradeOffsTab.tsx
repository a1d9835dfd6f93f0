import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Empty, Loading, Problem } from "@/components/Message";
import { insightQuery } from "@/features/analysis/api";
import { TradeOffs } from "@/features/analysis/TradeOffs";
import { aggregate } from "@/features/trials/aggregate";
import type { Analysis, Study, Trial } from "@/lib/api/client";
import { useInside } from "./useInside";

interface Props {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  finished: number;
  onPick: (trial: number) => void;
}

/** Show how the objectives of a study relate: correlations and Pareto fronts. */
export function TradeOffsTab({ study, trials: all, analysis, finished, onPick }: Props) {
  const trials = useInside(study, all);
  const { data: insight, error } = useQuery(insightQuery(study.name, study.created_at, finished, study.space_version));
  const { objectives } = study.spec;
  const points = useMemo(() => aggregate(trials, objectives).map(({ number, params, median }) => ({ number, params, values: median })), [trials, objectives]);
  if (points.length === 0) {
    return (
      <Empty title={t`No trade-offs yet`}>
        <p>{t`The charts appear after a trial has completed with a value for each objective.`}</p>
      </Empty>
    );
  }
  return (
    <>
      {error === null ? null : <Problem error={error} />}
      {insight?.computing ? <Loading what={t`correlations`} /> : null}
      <TradeOffs parameters={study.spec.space.parameters} study={study.name} objectives={objectives} points={points} analysis={analysis} data={insight?.data ?? null} onPick={onPick} />
    </>
  );
}
