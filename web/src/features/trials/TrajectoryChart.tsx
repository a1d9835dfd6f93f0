import { plural, t } from "@lingui/core/macro";
import { useCallback, useMemo, useState } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { Legend } from "@/components/Legend";
import { Segments } from "@/components/Segments";
import type { ObjectiveProgress, Study, StudySpec, Trial } from "@/lib/api/client";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { aggregate, type Aggregate } from "./aggregate";
import { trajectory, type Trajectory } from "./trajectory";
import { trajectoryOption } from "./trajectoryOption";
import styles from "./TrajectoryChart.module.css";

type Scale = "value" | "log";
type Show = "raw" | "aggregated";

interface Props {
  study: Study;
  trials: Trial[];
  objectives: ObjectiveProgress[] | undefined;
  onPick: (trial: number) => void;
  /** Called when the user zooms to another interval of trials. Must be the same function while nothing changes. */
  onRange?: ((first: number, last: number) => void) | undefined;
  title?: string;
}

/** Plot each trial's value, the best so far and the trials without a value; or the values of configurations over their replicates. */
export function TrajectoryChart({ study, trials, objectives, onPick, onRange, title = t`Trajectory` }: Props) {
  const { spec } = study;
  const [metric, setMetric] = useState(spec.objectives[0]?.metric ?? "");
  const [scale, setScale] = useState<Scale>("value");
  const [show, setShow] = useState<Show>("raw");
  const objective = spec.objectives.find((objective) => objective.metric === metric) ?? spec.objectives[0];
  if (objective === undefined) return null;
  return (
    <Card
      title={title}
      actions={
        <>
          {spec.objectives.length > 1 ? (
            <Segments
              label={t`Objective`}
              value={objective.metric}
              onChange={setMetric}
              options={spec.objectives.map(({ metric }) => ({ value: metric, text: metric }))}
            />
          ) : null}
          <Segments
            label={t`Show`}
            value={show}
            onChange={setShow}
            options={[
              { value: "raw", text: t`Trials` },
              { value: "aggregated", text: t`Configurations` },
            ]}
          />
          <Segments
            label={t`Scale`}
            value={scale}
            onChange={setScale}
            options={[
              { value: "value", text: t`Linear` },
              { value: "log", text: t`Log` },
            ]}
          />
        </>
      }
    >
      <Plot
        key={`${objective.metric} ${show}`}
        name={`${study.name}-${objective.metric}`}
        show={show}
        trials={trials}
        objective={objective}
        space={study}
        scale={scale}
        standard={objectives?.find((progress) => progress.metric === objective.metric)?.default ?? null}
        onPick={onPick}
        onRange={onRange}
      />
    </Card>
  );
}

interface PlotProps {
  name: string;
  show: Show;
  trials: Trial[];
  objective: StudySpec["objectives"][number];
  space: Study;
  scale: Scale;
  standard: number | null;
  onPick: (trial: number) => void;
  onRange: ((first: number, last: number) => void) | undefined;
}

function Plot({ name, show, trials, objective, space, scale, standard, onPick, onRange }: PlotProps) {
  const { spec, removed, imputed } = space;
  const groups = useMemo(() => (show === "raw" ? null : aggregate(trials, [objective])), [show, trials, objective]);
  const data = useMemo(() => trajectory(groups === null ? trials : asTrials(groups, trials), objective, { spec, removed, imputed }), [groups, trials, objective, spec, removed, imputed]);
  const unit = unitOf(objective);
  const positive = [...data.completed, ...data.pruned].every(([, value]) => value > 0) && (standard ?? 1) > 0;
  const logarithmic = scale === "log" && positive;
  const length = trials.at(-1)?.number ?? 0;
  const option = useCallback(
    (palette: Palette) => trajectoryOption({ data, palette, standard, length, logarithmic, unit, whiskers: groups === null ? [] : whiskers(groups, objective.metric) }),
    [data, standard, length, logarithmic, unit, groups, objective],
  );
  const pick = useCallback(
    (item: unknown) => {
      if (Array.isArray(item) && typeof item[0] === "number") onPick(item[0]);
    },
    [onPick],
  );
  if (data.completed.length + data.pruned.length + data.infeasible.length + data.failed.length === 0) {
    return <p className={styles.none}>{t`The plot appears when the first trial has ended.`}</p>;
  }
  return (
    <>
      {scale === "log" && !positive ? <p className={styles.note}>{t`A log scale cannot show values of zero or below. The scale is linear.`}</p> : null}
      <Marks data={data} aggregated={groups !== null} />
      <Chart
        name={name}
        label={describe(data, objective.metric, unit, standard, groups !== null)}
        height={340}
        option={option}
        onPick={pick}
        onRange={onRange}
      />
    </>
  );
}

/** Return each configuration as a trial with the number of its first trial. */
function asTrials(groups: Aggregate[], trials: Trial[]): Trial[] {
  const byNumber = new Map(trials.map((trial) => [trial.number, trial]));
  return groups.flatMap(({ number, median }) => {
    const trial = byNumber.get(number);
    return trial === undefined ? [] : [{ ...trial, metrics: median }];
  });
}

/** Return number, lowest and highest value of the configurations that were measured more than once. */
function whiskers(groups: Aggregate[], metric: string): [number, number, number][] {
  return groups.flatMap(({ number, count, low, high }) => (count > 1 ? [[number, low[metric] ?? NaN, high[metric] ?? NaN]] : []));
}

function Marks({ data, aggregated }: { data: Trajectory; aggregated: boolean }) {
  const marks: [shown: boolean, look: string | undefined, text: string][] = [
    [data.completed.length > 0, styles.completed, aggregated ? t`median, with the range from lowest to highest value` : t`completed`],
    [data.best.length > 0, styles.best, aggregated ? t`best median so far` : t`best single run so far`],
    [data.pruned.length > 0, styles.pruned, t`pruned, last value`],
    [data.infeasible.length > 0, styles.infeasible, t`infeasible (${formatNumber(data.infeasible.length)})`],
    [data.failed.length > 0, styles.failed, t`failed (${formatNumber(data.failed.length)})`],
  ];
  return (
    <Legend>
      {marks.map(([shown, look, text]) =>
        shown ? (
          <li key={text}>
            <span className={look} aria-hidden="true" />
            {text}
          </li>
        ) : null,
      )}
    </Legend>
  );
}

function describe(data: Trajectory, metric: string, unit: string, standard: number | null, aggregated: boolean): string {
  const best = data.best.at(-1);
  const found = data.best.at(-2) !== undefined && data.best.at(-2)?.[1] === best?.[1] ? data.best.at(-2) : best;
  const count = data.completed.length;
  const parts = [
    aggregated
      ? t`${metric} of ${plural(count, { one: "# configuration", other: "# configurations" })}`
      : t`${metric} of ${plural(count, { one: "# completed trial", other: "# completed trials" })}`,
  ];
  if (best !== undefined && found !== undefined) {
    const value = formatMetric(best[1], unit);
    parts.push(aggregated ? t`the best median is ${value}, of the configuration of trial ${found[0]}` : t`the best single run is ${value}, trial ${found[0]}`);
  }
  if (standard !== null) parts.push(t`the default is ${formatMetric(standard, unit)}`);
  if (data.infeasible.length > 0) parts.push(t`${formatNumber(data.infeasible.length)} infeasible`);
  if (data.failed.length > 0) parts.push(t`${formatNumber(data.failed.length)} failed`);
  return `${parts.join("; ")}.`;
}
