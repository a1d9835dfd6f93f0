import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis } from "@/components/plot";
import type { Objective, Trial } from "@/lib/api/client";
import { distribution } from "@/lib/sample";
import { formatMetric, formatPercent, unitOf } from "@/lib/format";
import styles from "./analysis.module.css";

interface Props {
  study: string;
  objective: Objective;
  trials: Trial[];
  /** The value of the default configuration. */
  standard: number | null;
}

/** Plot the share of trials that reach each value: the empirical distribution function of the objective. */
export function Distribution({ study, objective, trials, standard }: Props) {
  const { metric, goal } = objective;
  const unit = unitOf(objective);
  const values = useMemo(() => trials.flatMap(({ state, metrics }) => (state === "COMPLETED" && metrics?.[metric] !== undefined ? [metrics[metric]] : [])), [trials, metric]);
  const option = useCallback((palette: Palette) => distributionOption(palette, values, metric, unit, standard), [values, metric, unit, standard]);
  const better = standard === null ? 0 : values.filter((value) => (goal === "minimize" ? value < standard : value > standard)).length;
  const all = plural(values.length, { one: "# trial", other: "# trials" });
  const text = standard === null ? t`The distribution of ${metric} over ${all}.` : t`${formatPercent(better / Math.max(values.length, 1))} of ${all} are better than the default.`;
  return (
    <>
      <Chart name={`${study}-distribution-${metric}`} label={text} height={300} option={option} />
      <p className={styles.note}>{text}</p>
    </>
  );
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
    xAxis: { type: "value", scale: true, name: metric, nameLocation: "middle", nameGap: 28, ...scaleAxis(palette, (value) => formatMetric(value, unit, 3)) },
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
