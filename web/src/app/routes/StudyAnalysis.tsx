import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { Card } from "@/components/Card";
import { Empty, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Segments";
import { insightQuery } from "@/features/analysis/api";
import { Contour } from "@/features/analysis/Contour";
import { EffectTable } from "@/features/analysis/EffectTable";
import { Importance } from "@/features/analysis/Importance";
import { ParallelCoordinates } from "@/features/analysis/ParallelCoordinates";
import { Slices } from "@/features/analysis/Slices";
import { TradeOffs } from "@/features/analysis/TradeOffs";
import { aggregate } from "@/features/trials/aggregate";
import type { Analysis, Insight, Study, Trial } from "@/lib/api/client";
import { formatGain } from "@/lib/format";
import styles from "./pages.module.css";

interface Props {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  finished: number;
}

/** Which parameters matter and what they do. */
export function AnalysisTab({ study, trials, analysis, finished }: Props) {
  const [metric, setMetric] = useState(study.spec.objectives[0]?.metric ?? "");
  const { data: insight, error, refetch } = useQuery(insightQuery(study.name, study.created_at, finished));
  const objective = study.spec.objectives.find((one) => one.metric === metric) ?? study.spec.objectives[0];
  const told = insight?.data?.objectives.find((one) => one.metric === objective?.metric);
  const order = useMemo(
    () => told?.effects.map(({ parameter }) => parameter) ?? study.spec.space.parameters.map(({ name }) => name),
    [told, study],
  );
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  if (objective === undefined) return null;
  return (
    <>
      <div className={styles.choices}>
        {study.spec.objectives.length > 1 ? (
          <Segments label="Objective" value={objective.metric} onChange={setMetric} options={study.spec.objectives.map((one) => ({ value: one.metric, text: one.metric }))} />
        ) : null}
        {insight === undefined ? null : <AsOf insight={insight} explained={told?.explained} configurations={told?.configurations} />}
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {told === undefined ? (
        <NothingYet insight={insight} study={study} metric={objective.metric} />
      ) : (
        <>
          <div className={styles.halves}>
            <Card title={`What matters for ${objective.metric}`}>
              <Importance study={study.name} insight={told} />
            </Card>
            <Card title="Two parameters together">
              <Contour study={study.name} spec={study.spec} objective={objective} insight={told} trials={trials} />
            </Card>
          </div>
          <Card title={`${objective.metric} by each parameter`}>
            <Slices key={objective.metric} study={study.name} spec={study.spec} objective={objective} insight={told} trials={trials} />
          </Card>
          {insight?.data && analysis ? (
            <Card title="What each option changes">
              <EffectTable spec={study.spec} data={insight.data} standard={analysis.default_params} />
            </Card>
          ) : null}
        </>
      )}
      <Card title="Parallel coordinates">
        <ParallelCoordinates study={study.name} spec={study.spec} objective={objective} trials={trials} order={order} best={best} />
      </Card>
    </>
  );
}

/** How objectives go together. */
export function TradeOffsTab({ study, trials, analysis, finished, onPick }: Props & { onPick: (trial: number) => void }) {
  const { data: insight, error } = useQuery(insightQuery(study.name, study.created_at, finished));
  const { objectives } = study.spec;
  const points = useMemo(() => aggregate(trials, objectives).map(({ number, middle }) => ({ number, values: middle })), [trials, objectives]);
  if (points.length === 0) {
    return (
      <Empty title="No trade-offs yet">
        <p>They are drawn as soon as a trial has completed with a value for each objective.</p>
      </Empty>
    );
  }
  return (
    <>
      {error === null ? null : <Problem error={error} />}
      {insight?.computing ? <Loading what="correlations" /> : null}
      <TradeOffs study={study.name} objectives={objectives} points={points} standard={analysis?.default?.numbers[0]} data={insight?.data ?? null} onPick={onPick} />
    </>
  );
}

function AsOf({ insight, explained, configurations }: { insight: Insight; explained: number | undefined; configurations: number | undefined }) {
  const parts = [
    explained === undefined || configurations === undefined
      ? ""
      : explained < 0.2
        ? `From ${configurations} configurations the model has learned next to nothing: do not trust what follows.`
        : `From ${configurations} configurations; of those it had not seen, the model explains ${formatGain(Math.min(explained, 1))} of the variance.`,
    insight.data === null ? "" : `As of ${insight.finished} finished trials.`,
    insight.computing ? "A newer one is being computed." : "",
    insight.error === "" ? "" : `The last computation failed: ${insight.error}`,
  ];
  return (
    <p className={styles.note} role="status">
      {parts.filter((part) => part !== "").join(" ")}
    </p>
  );
}

function NothingYet({ insight, study, metric }: { insight: Insight | undefined; study: Study; metric: string }) {
  if (insight === undefined || (insight.computing && insight.data === null)) return <Loading what="what a worker is finding out" />;
  if (study.finished_count < insight.needed) {
    return (
      <Empty title="Not enough results yet">
        <p>
          What matters can be told from {insight.needed} finished trials on; there {study.finished_count === 1 ? "is" : "are"} {study.finished_count}.
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={`Nothing can be told of ${metric} yet`}>
      <p>It takes {insight.needed} different configurations whose results differ.</p>
    </Empty>
  );
}
