import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import styles from "@/app/routes/pages.module.css";
import { Card } from "@/components/Card";
import { Empty, Loading, Problem } from "@/components/Message";
import { Segments } from "@/components/Select";
import { insightQuery, partOf } from "@/features/analysis/api";
import { Contour } from "@/features/analysis/Contour";
import { Distribution } from "@/features/analysis/Distribution";
import { EffectTable } from "@/features/analysis/EffectTable";
import { Importance } from "@/features/analysis/Importance";
import { Notes } from "@/features/analysis/Notes";
import { ParallelCoordinates } from "@/features/analysis/ParallelCoordinates";
import { Slices } from "@/features/analysis/Slices";
import { TradeOffs } from "@/features/analysis/TradeOffs";
import { aggregate } from "@/features/trials/aggregate";
import { LearningCurves } from "@/features/trials/LearningCurves";
import { OwnPlot } from "@/features/trials/OwnPlot";
import type { Chosen } from "@/features/trials/ownPlot";
import type { Analysis, Insight, Study, Trial } from "@/lib/api/client";
import { formatPercent } from "@/lib/format";
import { present } from "@/lib/space";
import { adviceText } from "@/lib/verdicts";

interface Props {
  /** The chosen objective, which the address of the page holds; undefined: the first. */
  metric: string | undefined;
  onMetric: (metric: string | undefined) => void;
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  finished: number;
  /** The columns of the user's own plot, which the address of the page holds. */
  chosen: Chosen;
  onChoose: (changes: Chosen) => void;
  onPick: (trial: number) => void;
}

/** Show which parameters matter and how each changes the objective. */
export function AnalysisTab({ study, trials: all, analysis, finished, metric = "", onMetric, chosen, onChoose, onPick }: Props) {
  const trials = useInside(study, all);
  const { data: computed, error, refetch } = useQuery(insightQuery(study.name, study.created_at, finished, study.space_version));
  const insight = useMemo(() => ofTunable(computed, study.spec.context?.map(({ name }) => name) ?? []), [computed, study]);
  const objective = study.spec.objectives.find((one) => one.metric === metric) ?? study.spec.objectives[0];
  const modelled = insight?.data?.objectives.find((one) => one.metric === objective?.metric);
  const order = useMemo(
    () => modelled?.effects.map(({ parameter }) => parameter) ?? study.spec.space.parameters.map(({ name }) => name),
    [modelled, study],
  );
  const best = useMemo(() => new Set(analysis?.best.flatMap(({ numbers }) => numbers)), [analysis]);
  const isMeasured = useMemo(() => trials.some(({ metrics }) => objective !== undefined && metrics?.[objective.metric] !== undefined), [trials, objective]);
  if (objective === undefined) return null;
  const curves = <LearningCurves study={study.name} finished={finished} objective={objective} best={best} onPick={onPick} />;
  if (!isMeasured) {
    return (
      <>
        <NothingYet insight={insight} study={study} metric={objective.metric} />
        {curves}
      </>
    );
  }
  return (
    <>
      <div className={styles.choices}>
        {study.spec.objectives.length > 1 ? (
          <Segments label={t`Objective`} value={objective.metric} onChange={(chosen) => onMetric(chosen === study.spec.objectives[0]?.metric ? undefined : chosen)} options={study.spec.objectives.map((one) => ({ value: one.metric, text: one.metric }))} />
        ) : null}
        {insight === undefined ? null : <AsOf insight={insight} explained={modelled?.explained} configurations={modelled?.configurations} />}
      </div>
      {error === null ? null : <Problem error={error} again={() => void refetch()} />}
      {analysis === undefined || analysis.advice === "" ? null : <p role="note">{adviceText(analysis)}</p>}
      {insight?.data ? <Notes data={insight.data} /> : null}
      {modelled === undefined && partOf(insight, "forest") !== "awaited" ? (
        <NothingYet insight={insight} study={study} metric={objective.metric} />
      ) : (
        <>
          <div className={styles.halves}>
            <Card title={t`Parameter importance for ${objective.metric}`}>
              {modelled === undefined ? <Loading what={t`importance`} /> : <Importance study={study.name} insight={modelled} process={partOf(insight, "process")} />}
            </Card>
            <Card title={t`Interaction of two parameters`}>
              {modelled === undefined ? <Loading what={t`interactions`} /> : <Contour study={study.name} spec={study.spec} objective={objective} insight={modelled} trials={trials} />}
            </Card>
          </div>
          <Card title={t`Effect of each parameter on ${objective.metric}`}>
            {modelled === undefined ? <Loading what={t`effects`} /> : <Slices key={objective.metric} study={study.name} spec={study.spec} objective={objective} insight={modelled} trials={trials} />}
          </Card>
          {modelled !== undefined && insight?.data && analysis ? (
            <Card title={t`Effect of each option`}>
              <EffectTable spec={study.spec} data={insight.data} standard={analysis.default_params} />
            </Card>
          ) : null}
        </>
      )}
      <Card title={t`Distribution of ${objective.metric}`}>
        <Distribution study={study.name} objective={objective} trials={trials} standard={analysis?.objectives.find((one) => one.metric === objective.metric)?.default ?? null} standardParams={analysis?.default_params} />
      </Card>
      <Card title={t`Parallel coordinates`}>
        <ParallelCoordinates study={study.name} spec={study.spec} objective={objective} trials={trials} order={order} best={best} />
      </Card>
      {curves}
      <OwnPlot study={study.name} spec={study.spec} trials={trials} order={order} chosen={chosen} onChoose={onChoose} onPick={onPick} />
    </>
  );
}

/** Return an insight without the effects of context variables: they are observed, and nobody can set them. */
function ofTunable(insight: Insight | undefined, contexts: readonly string[]): Insight | undefined {
  if (insight?.data == null || contexts.length === 0) return insight;
  const objectives = insight.data.objectives.map((one) => ({ ...one, effects: one.effects.filter(({ parameter }) => !contexts.includes(parameter)) }));
  return { ...insight, data: { ...insight.data, objectives } };
}

function AsOf({ insight, explained, configurations }: { insight: Insight; explained: number | undefined; configurations: number | undefined }) {
  const parts = [
    explained === undefined || configurations === undefined
      ? ""
      : explained < 0.2
        ? t`Fitted to ${plural(configurations, { one: "# configuration", other: "# configurations" })}, the model explains almost none of the variance. Do not rely on the charts below.`
        : t`The model was fitted to ${plural(configurations, { one: "# configuration", other: "# configurations" })}. On configurations held out from the fit, it explains ${formatPercent(Math.min(explained, 1))} of the variance.`,
    insight.data === null ? "" : plural(insight.finished, { one: "As of # finished trial.", other: "As of # finished trials." }),
    insight.computing && insight.data !== null && (insight.data.missing ?? []).length === 0 ? t`A newer analysis is being computed.` : "",
    insight.error === "" ? "" : t`The last computation failed: ${insight.error}`,
  ];
  return (
    <p className={styles.note} role="status">
      {parts.filter((part) => part !== "").join(" ")}
    </p>
  );
}

function NothingYet({ insight, study, metric }: { insight: Insight | undefined; study: Study; metric: string }) {
  if (insight === undefined) return <Loading what={t`analysis`} />;
  // The error stands above.
  if (insight.error !== "") return null;
  if (study.finished_count < insight.needed) {
    return (
      <Empty title={t`Not enough results yet`}>
        <p>
          {t`The analysis needs ${plural(insight.needed, { one: "# finished trial", other: "# finished trials" })}. There ${plural(study.finished_count, { one: "is #", other: "are #" })} so far.`}
        </p>
      </Empty>
    );
  }
  return (
    <Empty title={t`No analysis of ${metric} yet`}>
      <p>{plural(insight.needed, { one: "The analysis starts when # configuration has been measured.", other: "The analysis starts when # configurations with different results have been measured." })}</p>
    </Empty>
  );
}

interface TradeOffsTabProps {
  study: Study;
  trials: Trial[];
  analysis: Analysis | undefined;
  finished: number;
  onPick: (trial: number) => void;
}

/** Show how the objectives of a study relate: correlations and Pareto fronts. */
export function TradeOffsTab({ study, trials: all, analysis, finished, onPick }: TradeOffsTabProps) {
  const trials = useInside(study, all);
  const { data: insight, error } = useQuery(insightQuery(study.name, study.created_at, finished, study.space_version));
  const { objectives } = study.spec;
  const points = useMemo(() => aggregate(trials, objectives).map(({ number, params, median, breaks }) => ({ number, params, values: median, isAllowed: breaks === null })), [trials, objectives]);
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
      {insight?.computing && insight.data === null ? <Loading what={t`correlations`} /> : null}
      <TradeOffs parameters={study.spec.space.parameters} study={study.name} objectives={objectives} points={points} analysis={analysis} data={insight?.data ?? null} onPick={onPick} />
    </>
  );
}

/** Return the trials that count in the study's present space, with the configurations with which they count. */
function useInside(study: Study, trials: Trial[]): Trial[] {
  const { space_version: version, spec, removed, imputed } = study;
  return useMemo(() => {
    if (version === 1) return trials;
    return trials.flatMap((trial) => {
      const params = present({ spec, removed, imputed }, trial.params);
      return params === null ? [] : [{ ...trial, params }];
    });
  }, [version, spec, removed, imputed, trials]);
}
