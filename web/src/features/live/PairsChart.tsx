import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis } from "@/components/plot";
import { changeText, intervalText } from "@/lib/effects";
import { formatNumber } from "@/lib/format";
import { extentOf, judge, numbersOf, percentOf, type Experiment, type Goal } from "./effects";

interface Props {
  study: string;
  metric: string;
  goal: Goal;
  experiment: Experiment;
  /** The logarithm of the ratio from which on a gain is worth keeping. */
  worth: number;
}

/** Plot the pairs of a running trial as they come, with the effect of all so far and its interval, which narrows. */
export function PairsChart({ study, metric, goal, experiment, worth }: Props) {
  const option = useCallback((palette: Palette) => pairsOption(palette, { metric, goal, experiment, worth }), [metric, goal, experiment, worth]);
  const last = experiment.looks.at(-1);
  const interval = last === undefined ? null : intervalText(last.low, last.high);
  const said = last === undefined ? "" : interval === null ? changeText(last.effect) : t`${changeText(last.effect)}, 95 % interval ${interval}`;
  return <Chart name={`${study}-pairs`} label={t`Change of ${metric} in ${formatNumber(experiment.looks.length)} pairs: ${said}.`} height={270} option={option} />;
}

/* eslint-disable lingui/no-unlocalized-strings -- places in ECharts */
const ABOVE = ["insideEndTop", "insideEndBottom"] as const;
const BELOW = ["insideEndBottom", "insideEndTop"] as const;
/* eslint-enable lingui/no-unlocalized-strings */

function pairsOption(palette: Palette, { metric, goal, experiment, worth }: Omit<Props, "study">): EChartsOption {
  const { looks } = experiment;
  const numbers = numbersOf(experiment).map(String);
  const last = looks.at(-1);
  const verdict = last && judge(last.low, last.high, goal);
  const color = verdict === "better" ? palette.good : verdict === "worse" ? palette.bad : palette.accent;
  const bounds = looks.map(({ low, high }) => (low === null || high === null ? null : { low: percentOf(low), high: percentOf(high) }));
  // The two lines may be close, so the name of the lower one is below it.
  const [zero, least] = goal === "minimize" ? ABOVE : BELOW;
  const values = scaleAxis(palette, (value) => `${value > 0 ? "+" : ""}${formatNumber(value, 3)} %`);
  const line = { type: "line" as const, symbol: "none", silent: true, lineStyle: { width: 0 }, stack: "interval", stackStrategy: "all" as const };
  return {
    ...frame(palette),
    grid: { left: 8, right: 16, top: 18, bottom: 26, containLabel: true },
    xAxis: { type: "category", data: numbers, name: t`Pair`, nameLocation: "middle", nameGap: 28, ...axis(palette), splitLine: { show: false } },
    // The ends are no round numbers.
    yAxis: { type: "value", ...values, axisLabel: { ...values.axisLabel, showMinLabel: false, showMaxLabel: false }, ...extentOf(looks, worth) },
    tooltip: {
      ...frame(palette).tooltip,
      trigger: "axis",
      formatter: (items) => {
        const place = [items].flat()[0]?.dataIndex ?? 0;
        const one = looks[place];
        if (one === undefined) return "";
        const number = numbers[place] ?? "";
        const interval = intervalText(one.low, one.high) ?? t`not bounded yet`;
        return t`Pair ${number}: ${metric} ${changeText(one.value)}\nAll pairs so far: ${changeText(one.effect)}\n95 % interval: ${interval}`;
      },
    },
    series: [
      { ...line, data: bounds.map((one) => one?.low ?? null) },
      { ...line, data: bounds.map((one) => (one === null ? null : one.high - one.low)), areaStyle: { color, opacity: 0.18 } },
      {
        type: "line",
        symbol: "none",
        silent: true,
        data: looks.map(({ effect }) => percentOf(effect)),
        lineStyle: { color, width: 2 },
        markLine: {
          silent: true,
          symbol: "none",
          label: { color: palette.soft, fontSize: 11 },
          data: [
            { yAxis: 0, lineStyle: { color: palette.text, type: "solid", width: 1 }, label: { formatter: t`no change`, position: zero } },
            { yAxis: percentOf(worth), lineStyle: { color: palette.good, type: "dashed" }, label: { formatter: t`worth keeping`, position: least } },
          ],
        },
      },
      { type: "scatter", symbolSize: 7, data: looks.map(({ value }) => percentOf(value)), itemStyle: { color: palette.soft } },
    ],
  };
}
