import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis, whisker } from "@/components/plot";
import { Segments } from "@/components/Select";
import type { Effect, Objective, ObjectiveInsight, Parameter, StudySpec, Trial } from "@/lib/api/client";
import { formatPercent, formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import { isLogarithmic, isNumeric } from "@/lib/scale";
import { uniform } from "@/lib/sample";
import { titled } from "@/lib/space";
import styles from "./analysis.module.css";

const FIRST = 6;
// More points than this hide the curve.
const MOST_POINTS = 600;

type Kind = "slice" | "average";

interface Props {
  study: string;
  spec: StudySpec;
  objective: Objective;
  insight: ObjectiveInsight;
  trials: Trial[];
}

/** Plot the effect of each parameter: the model's curve at the best configuration, or averaged over the others, and the trials. */
export function Slices({ study, spec, objective, insight, trials }: Props) {
  const [kind, setKind] = useState<Kind>("slice");
  const [all, showAll] = useState(false);
  const shown = all ? insight.effects : insight.effects.slice(0, FIRST);
  const parameters = useMemo(() => new Map(spec.space.parameters.map((parameter) => [parameter.name, parameter])), [spec]);
  const measured = useMemo(() => trials.filter(({ state }) => state === "COMPLETED").length, [trials]);
  const range = useMemo(() => rangeOf(insight, trials, objective.metric), [insight, trials, objective]);
  return (
    <>
      <div className={styles.choice}>
        <Segments
          label={t`Curve`}
          value={kind}
          onChange={setKind}
          options={[
            { value: "slice", text: t`At the best configuration` },
            { value: "average", text: t`Averaged over other parameters` },
          ]}
        />
      </div>
      <div className={styles.grid}>
        {shown.map((effect) => {
          const parameter = parameters.get(effect.parameter);
          return parameter === undefined ? null : (
            <Slice key={effect.parameter} study={study} kind={kind} parameter={parameter} effect={effect} insight={insight} objective={objective} trials={trials} range={range} />
          );
        })}
      </div>
      {insight.effects.length > FIRST ? (
        <Button small kind="quiet" onClick={() => showAll(!all)}>
          {all ? t`Show fewer` : t`Show all ${formatNumber(insight.effects.length)}`}
        </Button>
      ) : null}
      <p className={styles.note}>
        {kind === "average"
          ? t`Averaged over all values of the other parameters. Estimated by a regression forest.`
          : insight.model === "gp"
            ? t`The other parameters have the values of the best configuration. Estimated by the study’s Gaussian process.`
            : t`The other parameters have the values of the best configuration. Estimated by a regression forest.`}{" "}
        {t`Band and whiskers: two standard deviations of the model. Dots: trials, with any values of the other parameters; a few outliers may lie outside.`}{" "}
        {measured > MOST_POINTS ? t`A uniform sample of ${formatNumber(MOST_POINTS)} trials is shown.` : ""}
      </p>
    </>
  );
}

interface SliceProps {
  study: string;
  kind: Kind;
  parameter: Parameter;
  effect: Effect;
  insight: ObjectiveInsight;
  objective: Objective;
  trials: Trial[];
  range: [number, number];
}

function Slice({ study, kind, parameter, effect, insight, objective, trials, range }: SliceProps) {
  const unit = unitOf(objective);
  const option = useCallback(
    (palette: Palette) => sliceOption({ palette, kind, parameter, effect, best: insight.best[effect.parameter], metric: objective.metric, unit, trials, range }),
    [kind, parameter, effect, insight, objective, unit, trials, range],
  );
  const { mean } = kind === "slice" ? effect.slice : effect.average;
  return (
    <figure className={styles.figure}>
      <figcaption>
        <b>{titled(effect.parameter, parameter.unit)}</b> <span className={styles.soft}>{formatPercent(effect.importance)}</span>
      </figcaption>
      <Chart
        name={`${study}-${kind}-${effect.parameter}`}
        label={t`Expected ${objective.metric} by ${effect.parameter}: from ${formatMetric(Math.min(...mean), unit)} to ${formatMetric(Math.max(...mean), unit)}.`}
        height={200}
        option={option}
      />
    </figure>
  );
}

/** Return the range of the objective in all slices: the curves, and the middle of the trials. */
function rangeOf(insight: ObjectiveInsight, trials: Trial[], metric: string): [number, number] {
  const values = trials.flatMap(({ state, metrics }) => (state === "COMPLETED" && metrics?.[metric] !== undefined ? [metrics[metric]] : [])).sort((a, b) => a - b);
  const share = (part: number) => values[Math.round(part * (values.length - 1))] ?? 0;
  const curves = insight.effects.flatMap(({ slice, average }) => [...slice.mean, ...average.mean]);
  const low = Math.min(...curves, values.length > 0 ? share(0.02) : Infinity);
  const high = Math.max(...curves, values.length > 0 ? share(0.9) : -Infinity);
  const margin = (high - low) * 0.06;
  return [low - margin, high + margin];
}

interface SliceInput {
  palette: Palette;
  kind: Kind;
  parameter: Parameter;
  effect: Effect;
  best: number | string | boolean | undefined;
  metric: string;
  unit: string;
  trials: Trial[];
  range: [number, number];
}

function sliceOption({ palette, kind, parameter, effect, best, metric, unit, trials, range }: SliceInput): EChartsOption {
  const { mean, deviation } = kind === "slice" ? effect.slice : effect.average;
  const numeric = isNumeric(parameter);
  const at = (value: number | string | boolean | undefined): number | null => {
    if (numeric) return typeof value === "number" ? value : null;
    const index = effect.levels.findIndex((level) => level === value);
    return index < 0 ? null : index;
  };
  const points = uniform(
    trials.filter(({ state }) => state === "COMPLETED"),
    MOST_POINTS,
  ).flatMap(({ number, params, metrics }) => {
      const [x, y] = [at(params[effect.parameter]), metrics?.[metric]];
      return x === null || y === undefined ? [] : [[x, y, number]];
    });
  const curve = effect.levels.map((level, index) => [at(level) ?? index, mean[index] ?? NaN]);
  const band = effect.levels.map((level, index) => [at(level) ?? index, (mean[index] ?? NaN) - 2 * (deviation[index] ?? 0), (mean[index] ?? NaN) + 2 * (deviation[index] ?? 0)]);
  const color = palette.series[0] ?? palette.accent;
  const mark = at(best);
  const [low, high] = range;
  return {
    ...frame(palette),
    grid: { left: 4, right: 10, top: 20, bottom: 4, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value, seriesId } = item as unknown as { value: number[]; seriesId: string };
        const x = formatValue(numeric ? value[0] : effect.levels[value[0] ?? 0], parameter.unit);
        const what = seriesId === "trials" ? t`Trial ${value[2] ?? ""}` : t`expected`;
        return `${what}\n${effect.parameter} ${x}\n${formatMetric(value[1] ?? NaN, unit)}`;
      },
    },
    xAxis: numeric
      ? {
          type: isLogarithmic(parameter) ? ("log" as const) : ("value" as const),
          min: parameter.min ?? 0,
          max: parameter.max ?? 1,
          ...scaleAxis(palette, (value) => formatValue(value)),
          splitLine: { show: false },
        }
      : { type: "category" as const, data: effect.levels.map((level) => formatValue(level)), ...axis(palette), axisLabel: { ...optionLabel(effect.levels.length), color: palette.soft, fontSize: 12 } },
    yAxis: { type: "value", min: low, max: high, ...scaleAxis(palette, (value) => (value === low || value === high ? "" : formatMetric(value, unit, 6))), splitNumber: 3 },
    series: [
      { type: "scatter", id: "trials", data: points, symbolSize: 4, itemStyle: { color: palette.soft, opacity: 0.4 }, clip: true },
      numeric
        ? { type: "custom", data: band, renderItem: strip(band, color), silent: true, clip: true }
        : { type: "custom", data: band, renderItem: whisker(color), silent: true, clip: true },
      numeric
        ? {
            type: "line",
            id: "expected",
            data: curve,
            symbol: "none",
            lineStyle: { color, width: 2 },
            itemStyle: { color },
            ...(mark === null
              ? {}
              : {
                  markLine: {
                    silent: true,
                    symbol: "none",
                    precision: 15,
                    lineStyle: { color: palette.series[1] ?? palette.warn, type: "dashed" },
                    label: { formatter: t`best`, color: palette.soft, fontSize: 11 },
                    data: [{ xAxis: mark }],
                  },
                }),
          }
        : {
            type: "scatter",
            id: "expected",
            symbolSize: 10,
            data: curve.map((value) => ({ value, itemStyle: { color: value[0] === mark ? (palette.series[1] ?? palette.warn) : color } })),
          },
    ],
  };
}

// Pixels: the usual width of a slice.
const SLICE = 230;
// With more options than this, names are turned.
const MANY = 5;

/** Return how the names of options are written: all of them, so that the best one is never left out. */
function optionLabel(count: number) {
  return { interval: 0, hideOverlap: false, overflow: "truncate" as const, ...(count > MANY ? { rotate: 40, width: 70 } : { width: Math.floor(SLICE / count) }) };
}

interface Strip {
  coord: (point: [number, number]) => [number, number];
}

/** Return a renderer that draws the band between two curves as one shape. */
function strip(band: number[][], color: string) {
  return (params: { dataIndex: number }, raw: unknown) => {
    const api = raw as Strip;
    if (params.dataIndex !== 0) return null;
    const upper = band.map(([x = 0, , high = 0]) => api.coord([x, high]));
    const lower = band.map(([x = 0, low = 0]) => api.coord([x, low]));
    return { type: "polygon" as const, shape: { points: [...upper, ...lower.reverse()] }, style: { fill: color, opacity: 0.18 }, silent: true };
  };
}
