import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis } from "@/components/plot";
import type { TrialDetail } from "@/lib/api/client";
import { formatNumber } from "@/lib/format";

/** Plot the metrics of a trial over its steps. */
export function StepsChart({ study, trial }: { study: string; trial: TrialDetail }) {
  const option = useCallback((palette: Palette) => stepsOption(palette, trial), [trial]);
  return (
    <Card title={t`Metrics by step`}>
      <Chart name={`${study}-trial-${trial.number}`} label={t`Metrics of trial ${trial.number} over ${plural(trial.measurements.length, { one: "# step", other: "# steps" })}.`} height={240} option={option} />
    </Card>
  );
}

function stepsOption(palette: Palette, { measurements }: TrialDetail): EChartsOption {
  const metrics = [...new Set(measurements.flatMap(({ metrics }) => Object.keys(metrics)))];
  return {
    ...frame(palette),
    legend: metrics.length > 1 ? { textStyle: { color: palette.soft }, top: 0 } : { show: false },
    grid: { left: 8, right: 16, top: metrics.length > 1 ? 34 : 12, bottom: 24, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value, seriesName } = item as unknown as { value: number[]; seriesName: string };
        return `${t`Step ${value[0] ?? ""}`}\n${seriesName} ${formatNumber(value[1] ?? NaN, 6)}`;
      },
    },
    xAxis: { type: "value", scale: true, minInterval: 1, name: t`step`, nameLocation: "middle", nameGap: 24, ...axis(palette) },
    yAxis: { type: "value", scale: true, ...scaleAxis(palette, (value) => formatNumber(value, 6)) },
    series: metrics.map((metric, index) => ({
      type: "line",
      name: metric,
      showSymbol: measurements.length < 200,
      color: palette.series[index % palette.series.length] ?? palette.accent,
      data: measurements.flatMap(({ step, metrics: values }) => (values[metric] === undefined ? [] : [[step, values[metric]]])),
    })),
  };
}
