import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis, whisker, zoom } from "@/components/plot";
import { formatMetric, formatNumber } from "@/lib/format";
import type { Across, Point, Trajectory } from "./trajectory";

// Pixels for the labels of values; the same in both parts of the plot, so that trials are aligned.
const LEFT = 74;
// With more trials than this, the plot can be zoomed.
const MANY = 60;
// With more trials than this, they are small dots.
const LARGE = 500;
// If the largest value is less than this many times the smallest, powers of ten would leave most of the plot empty.
const NARROW = 50;

/** Return the base of a log scale. The scale begins and ends with a power of it. */
function logBase({ completed, doubtful, breaking, recommended, pruned }: Trajectory): number {
  let [low, high] = [Infinity, -Infinity];
  for (const points of [completed, doubtful, breaking, recommended, pruned]) for (const [, value] of points) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return high / low < NARROW ? 2 : 10;
}

interface OptionInput {
  data: Trajectory;
  palette: Palette;
  metric: string;
  standard: number | null;
  /** The number of the last trial, also of one without a result. */
  length: number;
  across: Across;
  logarithmic: boolean;
  unit: string;
  whiskers: [number, number, number][];
  /** The part of the vertical axis that is shown; null: all values. */
  range: [number, number] | null;
  /** What the tooltip says about a trial, below its value. */
  about: (trial: number) => string;
}

/** Return the ECharts option of a trajectory: values above, marks of trials without a value below. */
export function trajectoryOption({ data, palette, metric, standard, length, across, logarithmic, unit, whiskers, range, about }: OptionInput): EChartsOption {
  const { accent, bad, info, line, soft, warn } = palette;
  const zoomed = length > MANY;
  const foot = (zoomed ? 34 : 0) + 22;
  const rug = data.infeasible.length + data.failed.length + data.penalised.length > 0;
  const byTime = across === "time";
  const title = { name: byTime ? t`time` : t`trial`, nameLocation: "middle" as const, nameGap: 26, nameTextStyle: { color: soft, fontSize: 13 } };
  const label = { color: soft, fontSize: 13, hideOverlap: true };
  const plain = { splitLine: { show: false }, axisLine: { lineStyle: { color: line } }, axisTick: { show: false } };
  const xAxis = byTime
    ? { type: "time" as const, ...plain, axisLabel: label, ...extent(data) }
    : {
        type: "value" as const,
        min: 0,
        max: Math.max(length + 1, 5),
        minInterval: 1,
        ...plain,
        axisLabel: { ...label, formatter: (value: number) => (Number.isInteger(value) && value > 0 && value <= length ? formatNumber(value) : "") },
      };
  const unitless = unit === "" || unit === "s" ? "" : ` (${unit})`;
  const count = data.completed.length + data.doubtful.length;
  const dots = { type: "scatter" as const, large: true, largeThreshold: LARGE, progressive: 0, symbolSize: count > LARGE ? 4 : 8 };
  return {
    ...frame(palette),
    grid: [
      { left: LEFT, right: 16, top: 32, bottom: (rug ? 58 : 24) + foot },
      { left: LEFT, right: 16, height: 18, bottom: 24 + foot },
    ],
    ...(zoomed ? { dataZoom: zoom(palette, [0, 1]) } : {}),
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { seriesId, seriesName = "", value } = Array.isArray(item) ? (item[0] ?? { seriesId: "", value: [] }) : item;
        const [, measured, number] = value as Point;
        const result = seriesId === "infeasible" || seriesId === "failed" || seriesId === "penalised" ? seriesName : `${formatMetric(measured, unit)} (${seriesName})`;
        return [t`Trial ${number}`, result, about(number)].filter((text) => text !== "").join("\n");
      },
    },
    xAxis: [
      { ...xAxis, gridIndex: 0, ...(rug ? { axisLabel: { show: false } } : title) },
      { ...xAxis, gridIndex: 1, show: rug, ...title },
    ],
    yAxis: [
      {
        ...(logarithmic ? { type: "log" as const, logBase: logBase(data) } : { type: "value" as const, scale: true }),
        ...scaleAxis(palette, (value) => (value === range?.[0] || value === range?.[1] ? "" : formatMetric(value, unit, 6))),
        ...(range === null ? {} : { min: range[0], max: range[1] }),
        name: `${metric}${unitless}`,
        nameLocation: "end",
        nameTextStyle: { color: soft, fontSize: 13, align: "left", padding: [0, 0, 0, 8 - LEFT] },
      },
      { type: "value", gridIndex: 1, min: -1, max: 1, show: false },
    ],
    series: [
      {
        name: t`completed`,
        // Drawn as one shape: all points are redrawn with each trial that ends.
        ...dots,
        data: data.completed,
        itemStyle: { color: soft, opacity: count > 5000 ? 0.4 : 0.75 },
        markArea: {
          silent: true,
          itemStyle: { color: info, opacity: 0.1 },
          label: { color: soft, fontSize: 12, position: "insideTop" },
          data: data.checks.map(([from, to]) => [{ name: t`final check`, xAxis: byTime ? from : from - 0.5 }, { xAxis: byTime ? to : to + 0.5 }]),
        },
      },
      {
        name: t`doubtful timing`,
        ...dots,
        data: data.doubtful,
        large: false,
        itemStyle: { color: "transparent", borderColor: soft, borderWidth: 1.5 },
      },
      {
        name: t`breaks a constraint`,
        type: "scatter",
        data: data.breaking,
        symbol: "path://M0,0L10,10M10,0L0,10",
        symbolSize: 8,
        itemStyle: { color: "transparent", borderColor: warn, borderWidth: 1.8 },
      },
      {
        name: t`best single run so far`,
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
                // ECharts rounds the value of a line to two decimals by default: 73 ms would be drawn at 70 ms.
                precision: 15,
                lineStyle: { color: soft, type: "dashed" },
                label: { formatter: t`default`, position: "insideEndTop", color: soft, fontSize: 13 },
                data: [{ yAxis: standard }],
              },
      },
      ...(whiskers.length === 0 ? [] : [{ type: "custom" as const, id: "range", data: whiskers, renderItem: whisker(soft), z: 1 }]),
      {
        name: t`recommended`,
        type: "scatter",
        data: data.recommended,
        symbolSize: 12,
        itemStyle: { color: palette.series[1] ?? warn, borderColor: palette.surface, borderWidth: 1.5 },
        z: 4,
      },
      {
        name: t`pruned`,
        type: "scatter",
        data: data.pruned,
        symbol: "diamond",
        symbolSize: 9,
        itemStyle: { color: "transparent", borderColor: info, borderWidth: 1.5 },
      },
      { id: "infeasible", name: t`infeasible`, type: "scatter", xAxisIndex: 1, yAxisIndex: 1, data: data.infeasible, symbol: "triangle", symbolSize: 9, itemStyle: { color: warn } },
      { id: "penalised", name: t`penalty`, type: "scatter", xAxisIndex: 1, yAxisIndex: 1, data: data.penalised, symbol: "circle", symbolSize: 7, itemStyle: { color: "transparent", borderColor: warn, borderWidth: 1.5 } },
      { id: "failed", name: t`failed`, type: "scatter", xAxisIndex: 1, yAxisIndex: 1, data: data.failed, symbol: "rect", symbolSize: 7, itemStyle: { color: bad } },
    ],
  };
}

/** Return the first and the last time, with a margin; the same for values and for marks. */
function extent({ completed, doubtful, breaking, recommended, pruned, penalised, infeasible, failed }: Trajectory): { min?: number; max?: number } {
  let [low, high] = [Infinity, -Infinity];
  for (const points of [completed, doubtful, breaking, recommended, pruned, penalised, infeasible, failed]) for (const [place] of points) [low, high] = [Math.min(low, place), Math.max(high, place)];
  if (!Number.isFinite(low)) return {};
  const margin = Math.max((high - low) * 0.02, 500);
  return { min: low - margin, max: high + margin };
}
