import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis } from "@/components/plot";
import type { Configuration, Objective, Trial } from "@/lib/api/client";
import { distribution } from "@/lib/sample";
import { isSame } from "@/lib/space";
import { formatMetric, formatPercent, unitOf } from "@/lib/format";
import styles from "./analysis.module.css";

interface Props {
  study: string;
  objective: Objective;
  trials: Trial[];
  /** The value of the default configuration. */
  standard: number | null;
  /** The default configuration, whose own runs are not counted as better or worse than it. */
  standardParams?: Configuration | undefined;
}

/** Plot the share of trials that reach each value: the empirical distribution function of the objective. */
export function Distribution({ study, objective, trials, standard, standardParams }: Props) {
  const { metric, goal } = objective;
  const unit = unitOf(objective);
  const values = useMemo(() => trials.flatMap(({ state, metrics }) => (state === "COMPLETED" && metrics?.[metric] !== undefined ? [metrics[metric]] : [])), [trials, metric]);
  const option = useCallback((palette: Palette) => distributionOption(palette, values, metric, unit, standard), [values, metric, unit, standard]);
  const others = useMemo(() => othersOf(trials, metric, standardParams), [trials, metric, standardParams]);
  const better = standard === null ? 0 : others.filter((value) => (goal === "minimize" ? value < standard : value > standard)).length;
  const all = plural(standard === null ? values.length : others.length, { one: "# trial", other: "# trials" });
  const text = standard === null ? t`The distribution of ${metric} over ${all}.` : t`${formatPercent(better / Math.max(others.length, 1))} of ${all} of other configurations are better than the default.`;
  return (
    <>
      <Chart name={`${study}-distribution-${metric}`} label={text} height={300} zooms option={option} />
      <p className={styles.note}>{text}</p>
    </>
  );
}

/** Return the values of the trials that measured another configuration than the default. */
export function othersOf(trials: readonly Trial[], metric: string, standard: Configuration | undefined): number[] {
  return trials.flatMap(({ state, metrics, params }) => {
    const value = metrics?.[metric];
    return state !== "COMPLETED" || value === undefined || (standard !== undefined && isSame(params, standard)) ? [] : [value];
  });
}

function distributionOption(palette: Palette, values: number[], metric: string, unit: string, standard: number | null): EChartsOption {
  const corners = distribution(values);
  return {
    ...frame(palette),
    grid: { left: 12, right: 24, top: 32, bottom: 26, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      trigger: "axis",
      formatter: (items) => {
        const [value = NaN, share = NaN] = (Array.isArray(items) ? items : [items])[0]?.value as number[];
        return t`${formatPercent(share)} of the trials: at most ${formatMetric(value, unit)}`;
      },
    },
    xAxis: { type: "value", scale: true, name: metric, nameLocation: "middle", nameGap: 28, ...scaleAxis(palette, (value) => formatMetric(value, unit, 6)) },
    yAxis: { type: "value", min: 0, max: 1, name: t`share of trials`, ...scaleAxis(palette, (value) => `${Math.round(100 * value)} %`), nameLocation: "end", nameTextStyle: { color: palette.soft, fontSize: 12, align: "left" } },
    series: [
      {
        type: "line",
        step: "end",
        data: corners.length === 0 ? [] : [[corners[0]?.[0] ?? 0, 0], ...corners],
        symbol: "none",
        color: palette.series[0] ?? palette.accent,
        lineStyle: { width: 2 },
        markLine:
          standard === null
            ? { data: [] }
            : {
                silent: true,
                symbol: "none",
                precision: 15,
                lineStyle: { color: palette.soft, type: "dashed" },
                label: { formatter: t`default`, color: palette.soft, fontSize: 12 },
                data: [{ xAxis: standard }],
              },
      },
    ],
  };
}
