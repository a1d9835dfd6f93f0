import { plural, t } from "@lingui/core/macro";
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
import type { Analysis, Insight, Study, Trial } from "@/lib/api/client";
import { formatGain } from "@/lib/format";
import styles from "../pages.module.css";
import { useInside } from "./useInside";

interface Props {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  finished: number;
}

/** Show which parameters matter and how each changes the objective. */
export function AnalysisTab({ study, trials: all, analysis, finished }: Props) {
  const trials = useInside(study, all);
  const [metric, setMetric] = useState(study.spec.objectives[0]?.metric ?? "");
  const { data: insight, error, refetch } = useQuery(insightQuery(study.name, study.created_at, finished, study.space_version));
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
          <Segments label={t`Objective`} value={objective.metric} onChange={setMetric} options={study.spec.objectives.map((one) => ({ value: one.metric, text: one.metric }))} />
        ) : null}
        {insight === undefined ? null : <AsOf insight={insight} explained={told?.explained} configurations={told?.configurations} />}
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {told === undefined ? (
        <NothingYet insight={insight} study={study} metric={objective.metric} />
      ) : (
        <>
          <div className={styles.halves}>
            <Card title={t`What matters for ${objective.metric}`}>
              <Importance study={study.name} insight={told} />
            </Card>
            <Card title={t`Two parameters together`}>
              <Contour study={study.name} spec={study.spec} objective={objective} insight={told} trials={trials} />
            </Card>
          </div>
          <Card title={t`${objective.metric} by each parameter`}>
            <Slices key={objective.metric} study={study.name} spec={study.spec} objective={objective} insight={told} trials={trials} />
          </Card>
          {insight?.data && analysis ? (
            <Card title={t`What each option changes`}>
              <EffectTable spec={study.spec} data={insight.data} standard={analysis.default_params} />
            </Card>
          ) : null}
        </>
      )}
      <Card title={t`Parallel coordinates`}>
        <ParallelCoordinates study={study.name} spec={study.spec} objective={objective} trials={trials} order={order} best={best} />
      </Card>
    </>
  );
}

function AsOf({ insight, explained, configurations }: { insight: Insight; explained: number | undefined; configurations: number | undefined }) {
  const parts = [
    explained === undefined || configurations === undefined
      ? ""
      : explained < 0.2
        ? t`From ${plural(configurations, { one: "# configuration", other: "# configurations" })} the model has learned next to nothing: do not trust what follows.`
        : t`From ${plural(configurations, { one: "# configuration", other: "# configurations" })}; of those it had not seen, the model explains ${formatGain(Math.min(explained, 1))} of the variance.`,
    insight.data === null ? "" : plural(insight.finished, { one: "As of # finished trial.", other: "As of # finished trials." }),
    insight.computing && insight.data !== null ? t`A newer one is being computed.` : "",
    insight.error === "" ? "" : t`The last computation failed: ${insight.error}`,
  ];
  return (
    <p className={styles.note} role="status">
      {parts.filter((part) => part !== "").join(" ")}
    </p>
  );
}

function NothingYet({ insight, study, metric }: { insight: Insight | undefined; study: Study; metric: string }) {
  if (insight === undefined || (insight.computing && insight.data === null)) return <Loading what={t`what a worker is finding out`} />;
  if (study.finished_count < insight.needed) {
    return (
      <Empty title={t`Not enough results yet`}>
        <p>
          {t`What matters can be told from ${plural(insight.needed, { one: "# finished trial", other: "# finished trials" })} on; ${plural(study.finished_count, { one: "there is #", other: "there are #" })}.`}
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={t`Nothing can be told of ${metric} yet`}>
      <p>{plural(insight.needed, { one: "It takes # configuration.", other: "It takes # different configurations whose results differ." })}</p>
    </Empty>
  );
}
