import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo, useState } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { axis, frame, isolines, shade } from "@/components/plot";
import { Segments, Select } from "@/components/Select";
import type { Objective, ObjectiveInsight, Parameter, Scalar, StudySpec, Surface, Trial } from "@/lib/api/client";
import { formatMetric, formatNumber, formatPercent, formatValue, unitOf } from "@/lib/format";
import { isNumeric, placeOf, ticksOf, type Tick } from "@/lib/scale";
import { uniform } from "@/lib/sample";
import { titled } from "@/lib/space";
import styles from "./analysis.module.css";

type Kind = "model" | "ranks";

const MOST_POINTS = 1500;

interface Props {
  study: string;
  spec: StudySpec;
  objective: Objective;
  insight: ObjectiveInsight;
  trials: Trial[];
}

/** Plot the model over two parameters, with the others as in the best configuration, and the trials. */
export function Contour({ study, spec, objective, insight, trials }: Props) {
  const [chosen, choose] = useState("");
  const [kind, setKind] = useState<Kind>("model");
  const ordered = useMemo(() => [...insight.surfaces].sort((a, b) => b.importance - a.importance), [insight]);
  const surface = ordered.find((one) => nameOf(one) === chosen) ?? ordered[0];
  if (surface === undefined) return <p className={styles.note}>{t`This chart needs two parameters.`}</p>;
  return (
    <>
      <div className={styles.choice}>
        <Select
          label={t`Parameters`}
          labelled
          value={nameOf(surface)}
          onChange={choose}
          options={ordered.map((one) => ({ value: nameOf(one), text: t`${one.first} and ${one.second} (${formatPercent(one.importance)} together)` }))}
        />
        <Segments
          label={t`Colour`}
          value={kind}
          onChange={setKind}
          options={[
            { value: "model", text: t`Model` },
            { value: "ranks", text: t`Ranks of trials` },
          ]}
        />
      </div>
      <Plane key={nameOf(surface)} kind={kind} study={study} spec={spec} objective={objective} insight={insight} surface={surface} trials={trials} />
    </>
  );
}

function nameOf({ first, second }: Surface): string {
  return `${first} ${second}`;
}

function Plane({ study, spec, objective, insight, surface, trials, kind }: Props & { surface: Surface; kind: Kind }) {
  const unit = unitOf(objective);
  const pair = parametersOf(spec, surface);
  const measured = useMemo(() => trials.filter(({ state }) => state === "COMPLETED").length, [trials]);
  const [low, high] = useMemo(() => {
    const values = surface.mean.flat();
    return [Math.min(...values), Math.max(...values)];
  }, [surface]);
  const option = useCallback(
    (palette: Palette) => planeOption(palette, { kind, spec, surface, trials, insight, objective, unit, low, high }),
    [kind, spec, surface, trials, insight, objective, unit, low, high],
  );
  return (
    <>
      <Chart
        name={`${study}-plane-${surface.first}-${surface.second}`}
        label={t`Expected ${objective.metric} over ${surface.first} and ${surface.second}, from ${formatMetric(low, unit)} to ${formatMetric(high, unit)}.`}
        height={380}
        option={option}
      />
      <div className={styles.key}>
        <span>{kind === "ranks" ? t`best trial` : formatMetric(low, unit)}</span>
        <span className={styles.ramp} aria-hidden="true" />
        <span>{kind === "ranks" ? t`worst trial` : formatMetric(high, unit)}</span>
        <span className={styles.soft}>
          {kind === "ranks" ? t`dots: trials by the rank of ${objective.metric}, with any values of the other parameters; circle: the best configuration` : t`expected ${objective.metric}; dots: trials, with any values of the other parameters; circle: the best configuration`}
          {kind === "model" && pair.every(isNumeric) ? t`; lines: equal values, with labels` : ""}
          {measured > MOST_POINTS ? t`; a uniform sample of ${formatNumber(MOST_POINTS)} trials is shown` : ""}
        </span>
      </div>
    </>
  );
}

function parametersOf(spec: StudySpec, { first, second }: Surface): Parameter[] {
  return [first, second].flatMap((name) => spec.space.parameters.find((parameter) => parameter.name === name) ?? []);
}

interface PlaneInput {
  kind: Kind;
  spec: StudySpec;
  surface: Surface;
  trials: Trial[];
  insight: ObjectiveInsight;
  objective: Objective;
  unit: string;
  low: number;
  high: number;
}

/** Return how many digits distinguish numbers up to `most` that differ by `step`. */
function digitsOf(most: number, step: number): number {
  return step < most ? Math.ceil(Math.log10(most / step)) + 1 : 2;
}

interface Drawing {
  coord: (point: [number, number]) => [number, number];
  value: (dimension: number) => number;
}

function planeOption(palette: Palette, { kind, spec, surface, trials, insight, objective, unit, low, high }: PlaneInput): EChartsOption {
  const { metric } = objective;
  const [first, second] = parametersOf(spec, surface);
  if (first === undefined || second === undefined) return {};
  const [columns, rows] = [edges(first, surface.first_levels), edges(second, surface.second_levels)];
  const cells = surface.mean.flatMap((line, i) =>
    line.map((value, j) => [columns[i]?.[0] ?? 0, columns[i]?.[1] ?? 1, rows[j]?.[0] ?? 0, rows[j]?.[1] ?? 1, value, i, j]),
  );
  const points = uniform(
    trials.filter(({ state }) => state === "COMPLETED"),
    MOST_POINTS,
  ).flatMap(({ number, params, metrics }) => {
      const [x, y] = [placeOf(first, params[first.name]), placeOf(second, params[second.name])];
      return x === null || y === null ? [] : [[x, y, number, metrics?.[metric] ?? NaN]];
    });
  const ranks = ranksOf(
    points.map(([, , , value = NaN]) => value),
    objective.goal,
  );
  const best = [placeOf(first, insight.best[first.name]), placeOf(second, insight.best[second.name])];
  return {
    ...frame(palette),
    grid: { left: 12, right: 16, top: 30, bottom: 26, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value, seriesId } = item as unknown as { value: number[]; seriesId: string };
        if (seriesId === "trials") return `${t`Trial ${value[2] ?? ""}`}\n${formatMetric(value[3] ?? NaN, unit)}`;
        if (seriesId === "best") return t`the best configuration`;
        const [x, y] = [surface.first_levels[value[5] ?? 0], surface.second_levels[value[6] ?? 0]];
        return `${first.name} ${formatValue(x, first.unit)}\n${second.name} ${formatValue(y, second.unit)}\n${t`expected ${formatMetric(value[4] ?? NaN, unit)}`}`;
      },
    },
    xAxis: { ...unitAxis(palette, first), name: titled(first.name, first.unit), nameLocation: "middle", nameGap: 28 },
    yAxis: { ...unitAxis(palette, second), name: titled(second.name, second.unit), nameLocation: "end", nameTextStyle: { color: palette.soft, fontSize: 12, align: "left" } },
    series: [
      {
        type: "custom",
        id: "model",
        data: kind === "model" ? cells : [],
        encode: { x: [0, 1], y: [2, 3] },
        renderItem: (_, raw) => {
          const api = raw as unknown as Drawing;
          const [left, bottom] = api.coord([api.value(0), api.value(2)]);
          const [right, top] = api.coord([api.value(1), api.value(3)]);
          return {
            type: "rect",
            shape: { x: left, y: top, width: right - left + 0.6, height: bottom - top + 0.6 },
            style: { fill: shade(palette.scale, high > low ? (api.value(4) - low) / (high - low) : 0.5) },
          };
        },
      },
      // Lines need two numeric axes: there is nothing between two choices.
      ...(kind === "model" && isNumeric(first) && isNumeric(second)
        ? [
            {
              id: "lines",
              ...isolines({
                grid: { columns: places(first, surface.first_levels), rows: places(second, surface.second_levels), values: surface.mean },
                marks: points.map(([x = NaN, y = NaN]) => [x, y]),
                write: (level, step) => formatMetric(level, unit, digitsOf(Math.max(Math.abs(low), Math.abs(high)), step)),
              }),
            },
          ]
        : []),
      {
        type: "scatter",
        id: "trials",
        data: points.map((value, index) => (kind === "model" ? { value } : { value, itemStyle: { color: shade(palette.scale, ranks[index] ?? 0) } })),
        symbolSize: (points.length > 500 ? 4 : 6) + (kind === "model" ? 0 : 3),
        itemStyle: { color: "rgb(255 255 255 / 75%)", borderColor: "rgb(0 0 0 / 65%)", borderWidth: kind === "model" ? 1 : 0.5 },
      },
      {
        type: "scatter",
        id: "best",
        data: best.includes(null) ? [] : [best],
        symbolSize: 18,
        // White is visible on the colours of the model, and the text colour without them.
        itemStyle: kind === "model" ? { color: "transparent", borderColor: "#ffffff", borderWidth: 3, shadowBlur: 3, shadowColor: "#000000" } : { color: "transparent", borderColor: palette.text, borderWidth: 2 },
      },
    ],
  };
}

/** Return the place of each level on its axis. */
function places(parameter: Parameter, levels: Scalar[]): number[] {
  return levels.map((level, index) => placeOf(parameter, level) ?? index / levels.length);
}

/** Return the extent of each level on its axis, halfway to its neighbours. */
function edges(parameter: Parameter, levels: Scalar[]): [number, number][] {
  return places(parameter, levels).map((place, index, all) => {
    const [before, after] = [all[index - 1], all[index + 1]];
    return [before === undefined ? 0 : (before + place) / 2, after === undefined ? 1 : (after + place) / 2];
  });
}

/** Return a parameter's axis from 0 to 1, labelled with the parameter's values. */
function unitAxis(palette: Palette, parameter: Parameter) {
  const ticks: Tick[] = ticksOf(parameter);
  return {
    type: "value" as const,
    min: 0,
    max: 1,
    ...axis(palette),
    splitLine: { show: false },
    axisLabel: {
      color: palette.soft,
      fontSize: 12,
      customValues: ticks.map(({ place }) => place),
      formatter: (value: number) => ticks.find(({ place }) => Math.abs(place - value) < 1e-6)?.text ?? "",
    },
  };
}

/** Return the rank of each value from 0 (the best) to 1 (the worst). Equal values share the mean of their ranks. */
export function ranksOf(values: readonly number[], goal: Objective["goal"]): number[] {
  const sign = goal === "minimize" ? 1 : -1;
  const order = values.map((_, index) => index).sort((a, b) => sign * ((values[a] ?? NaN) - (values[b] ?? NaN)));
  const ranks = new Array<number>(values.length).fill(0);
  const most = Math.max(values.length - 1, 1);
  for (let first = 0; first < order.length; ) {
    let end = first + 1;
    while (end < order.length && values[order[end] ?? 0] === values[order[first] ?? 0]) end += 1;
    for (const index of order.slice(first, end)) ranks[index] = (first + end - 1) / 2 / most;
    first = end;
  }
  return ranks;
}
