import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis, whisker, zoom } from "@/components/plot";
import { formatMetric, formatNumber } from "@/lib/format";
import type { Point, Trajectory } from "./trajectory";

// Pixels for the labels of values; the same in both parts of the plot, so that trials are aligned.
const LEFT = 66;
// With more trials than this, the plot can be zoomed.
const MANY = 60;
// With more trials than this, they are small dots.
const LARGE = 500;
// If the largest value is less than this many times the smallest, powers of ten would leave most of the plot empty.
const NARROW = 50;

/** Return the base of a log scale. The scale begins and ends with a power of it. */
function logBase({ completed, pruned }: Trajectory): number {
  let [low, high] = [Infinity, -Infinity];
  for (const [, value] of [...completed, ...pruned]) [low, high] = [Math.min(low, value), Math.max(high, value)];
  return high / low < NARROW ? 2 : 10;
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

/** Return the ECharts option of a trajectory: values above, marks of trials without a value below. */
export function trajectoryOption({ data, palette, standard, length, logarithmic, unit, whiskers }: OptionInput): EChartsOption {
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
        // Drawn as one shape: all points are redrawn with each trial that ends.
        large: true,
        largeThreshold: LARGE,
        itemStyle: { color: soft, opacity: 0.75 },
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
      ...(data.pruned.length === 0
        ? []
        : [
            {
              name: t`pruned`,
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
