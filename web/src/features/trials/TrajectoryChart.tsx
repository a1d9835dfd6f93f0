import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo, useState } from "react";
import { Card } from "@/components/Card";
import { Chart, type Palette } from "@/components/Chart";
import { Legend } from "@/components/Legend";
import { Segments } from "@/components/Segments";
import type { ObjectiveProgress, StudySpec, Trial } from "@/lib/api/client";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { frame, scaleAxis, whisker, zoom } from "@/components/plot";
import { aggregate, type Aggregate } from "./aggregate";
import { trajectory, type Point, type Trajectory } from "./trajectory";
import styles from "./TrajectoryChart.module.css";

// Room for the labels of values; the same for both parts of the plot, so that trials stand above each other.
const LEFT = 66;
// From so many trials on a stretch of them can be looked at more closely.
const MANY = 60;
// From so many on they are small dots.
const LARGE = 500;

type Scale = "value" | "log";
type Show = "raw" | "aggregated";

interface Props {
  study: string;
  spec: StudySpec;
  trials: Trial[];
  objectives: ObjectiveProgress[] | undefined;
  onPick: (trial: number) => void;
  /** Another stretch of trials is looked at. Keep it the same function. */
  onRange?: ((first: number, last: number) => void) | undefined;
  title?: string;
}

/** Each trial's value, the best so far, and where trials gave none; or each configuration's, over its replicates. */
export function TrajectoryChart({ study, spec, trials, objectives, onPick, onRange, title = t`Trajectory` }: Props) {
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
        name={`${study}-${objective.metric}`}
        show={show}
        trials={trials}
        objective={objective}
        space={spec.space.parameters}
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
  space: StudySpec["space"]["parameters"];
  scale: Scale;
  standard: number | null;
  onPick: (trial: number) => void;
  onRange: ((first: number, last: number) => void) | undefined;
}

function Plot({ name, show, trials, objective, space, scale, standard, onPick, onRange }: PlotProps) {
  const groups = useMemo(() => (show === "raw" ? null : aggregate(trials, [objective])), [show, trials, objective]);
  const data = useMemo(() => trajectory(groups === null ? trials : asTrials(groups, trials), objective, space), [groups, trials, objective, space]);
  const unit = unitOf(objective);
  const positive = [...data.completed, ...data.pruned].every(([, value]) => value > 0) && (standard ?? 1) > 0;
  const logarithmic = scale === "log" && positive;
  const length = trials.at(-1)?.number ?? 0;
  const option = useCallback(
    (palette: Palette) => chartOption({ data, palette, standard, length, logarithmic, unit, whiskers: groups === null ? [] : whiskers(groups, objective.metric) }),
    [data, standard, length, logarithmic, unit, groups, objective],
  );
  const pick = useCallback(
    (item: unknown) => {
      if (Array.isArray(item) && typeof item[0] === "number") onPick(item[0]);
    },
    [onPick],
  );
  if (data.completed.length + data.pruned.length + data.infeasible.length + data.failed.length === 0) {
    return <p className={styles.none}>{t`The plot starts with the first trial that ends.`}</p>;
  }
  return (
    <>
      {scale === "log" && !positive ? <p className={styles.note}>{t`Values of zero and below have no place on a log scale: shown on a linear one.`}</p> : null}
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

/** Configurations as if each were a trial, at the number of its first one. */
function asTrials(groups: Aggregate[], trials: Trial[]): Trial[] {
  const byNumber = new Map(trials.map((trial) => [trial.number, trial]));
  return groups.flatMap(({ number, middle }) => {
    const trial = byNumber.get(number);
    return trial === undefined ? [] : [{ ...trial, metrics: middle }];
  });
}

/** Number, lowest and highest value of what was measured more than once. */
function whiskers(groups: Aggregate[], metric: string): [number, number, number][] {
  return groups.flatMap(({ number, count, low, high }) => (count > 1 ? [[number, low[metric] ?? NaN, high[metric] ?? NaN]] : []));
}

function Marks({ data, aggregated }: { data: Trajectory; aggregated: boolean }) {
  const marks: [shown: boolean, look: string | undefined, text: string][] = [
    [data.completed.length > 0, styles.completed, aggregated ? t`median, and from the lowest to the highest value` : t`completed`],
    [data.best.length > 0, styles.best, t`best so far`],
    [data.pruned.length > 0, styles.pruned, t`stopped early, last value`],
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

// Within this many times the smallest value powers of ten would leave most of the plot empty.
const NARROW = 50;

/** What a log scale counts in: it begins and ends with a power of it. */
function logBase({ completed, pruned }: Trajectory): number {
  let [low, high] = [Infinity, -Infinity];
  for (const [, value] of [...completed, ...pruned]) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return high / low < NARROW ? 2 : 10;
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
  if (best !== undefined && found !== undefined) parts.push(t`the best is ${formatMetric(best[1], unit)}, from trial ${found[0]}`);
  if (standard !== null) parts.push(t`the default is ${formatMetric(standard, unit)}`);
  if (data.infeasible.length > 0) parts.push(t`${formatNumber(data.infeasible.length)} infeasible`);
  if (data.failed.length > 0) parts.push(t`${formatNumber(data.failed.length)} failed`);
  return `${parts.join("; ")}.`;
}

interface OptionInput {
  data: Trajectory;
  palette: Palette;
  standard: number | null;
  length: number;
  logarithmic: boolean;
  unit: string;
  whiskers: [number, number, number][];
}

function chartOption({ data, palette, standard, length, logarithmic, unit, whiskers }: OptionInput): EChartsOption {
  const { accent, bad, info, line, soft, warn } = palette;
  const zoomed = length > MANY;
  const foot = zoomed ? 34 : 0;
  const rug = data.infeasible.length + data.failed.length > 0;
  const xAxis = {
    type: "value" as const,
    min: 0,
    max: Math.max(length + 1, 5),
    minInterval: 1,
    splitLine: { show: false },
    axisLine: { lineStyle: { color: line } },
    axisTick: { show: false },
    axisLabel: { color: soft, fontSize: 13, formatter: (value: number) => (Number.isInteger(value) && value > 0 && value <= length ? formatNumber(value) : "") },
  };
  const marks = (trials: number[]): Point[] => trials.map((number) => [number, 0]);
  return {
    ...frame(palette),
    grid: [
      { left: LEFT, right: 16, top: 14, bottom: (rug ? 58 : 24) + foot },
      { left: LEFT, right: 16, height: 18, bottom: 24 + foot },
    ],
    ...(zoomed
      ? {
          dataZoom: zoom(palette, [0, 1]),
        }
      : {}),
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { seriesId, seriesName = "", value } = Array.isArray(item) ? (item[0] ?? { seriesId: "", value: [] }) : item;
        const [number, measured] = value as Point;
        const result = seriesId === "infeasible" || seriesId === "failed" ? seriesName : `${formatMetric(measured, unit)} (${seriesName})`;
        return `${t`Trial ${number}`}\n${result}`;
      },
    },
    xAxis: [
      { ...xAxis, gridIndex: 0, axisLabel: rug ? { show: false } : xAxis.axisLabel },
      { ...xAxis, gridIndex: 1, show: rug },
    ],
    yAxis: [
      {
        ...(logarithmic ? { type: "log" as const, logBase: logBase(data) } : { type: "value" as const, scale: true }),
        ...scaleAxis(palette, (value) => formatMetric(value, unit, 3)),
      },
      { type: "value", gridIndex: 1, min: -1, max: 1, show: false },
    ],
    series: [
      {
        name: t`completed`,
        type: "scatter",
        data: data.completed,
        symbolSize: data.completed.length > LARGE ? 4 : 8,
        // drawn as one shape, not one each: they are all drawn anew with each trial that ends
        large: true,
        largeThreshold: LARGE,
        itemStyle: { color: soft, opacity: 0.75 },
      },
      {
        name: t`best so far`,
        type: "line",
        step: "end",
        data: data.best,
        symbol: "none",
        triggerLineEvent: false,
        lineStyle: { color: accent, width: 2.5 },
        itemStyle: { color: accent },
        z: 3,
        markLine:
          standard === null
            ? { data: [] }
            : {
                silent: true,
                symbol: "none",
                // ECharts rounds a line's value to two decimals unless told otherwise: 73 ms would stand at 70 ms.
                precision: 15,
                lineStyle: { color: soft, type: "dashed" },
                label: { formatter: t`default`, position: "insideEndTop", color: soft, fontSize: 13 },
                data: [{ yAxis: standard }],
              },
      },
      ...(whiskers.length === 0 ? [] : [{ type: "custom" as const, id: "range", data: whiskers, renderItem: whisker(soft), z: 1 }]),
      ...(data.pruned.length === 0
        ? []
        : [
            {
              name: t`stopped early`,
              type: "scatter" as const,
              data: data.pruned,
              symbol: "diamond",
              symbolSize: 9,
              itemStyle: { color: "transparent", borderColor: info, borderWidth: 1.5 },
            },
          ]),
      ...(data.infeasible.length === 0
        ? []
        : [
            {
              id: "infeasible",
              name: t`infeasible`,
              type: "scatter" as const,
              xAxisIndex: 1,
              yAxisIndex: 1,
              data: marks(data.infeasible),
              symbol: "triangle",
              symbolSize: 9,
              itemStyle: { color: warn },
            },
          ]),
      ...(data.failed.length === 0
        ? []
        : [
            {
              id: "failed",
              name: t`failed`,
              type: "scatter" as const,
              xAxisIndex: 1,
              yAxisIndex: 1,
              data: marks(data.failed),
              symbol: "rect",
              symbolSize: 7,
              itemStyle: { color: bad },
            },
          ]),
    ],
  };
}
