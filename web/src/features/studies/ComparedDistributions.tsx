import { plural, t } from "@lingui/core/macro";
import { useQueries } from "@tanstack/react-query";
import type { EChartsOption } from "echarts";
import { useCallback } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import { Problem } from "@/components/Message";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis } from "@/components/plot";
import type { Comparison } from "@/lib/api/client";
import { distribution } from "@/lib/sample";
import { formatMetric, formatPercent, unitOf } from "@/lib/format";
import { valuesQuery } from "./api";

interface Curve {
  study: string;
  values: number[];
}

/** Plot the share of trials of each study that reach each value. The higher curve on the side of good values finds them more often. */
export function ComparedDistributions({ comparison: { metric, curves } }: { comparison: Comparison }) {
  const asked = useQueries({ queries: curves.map(({ study, last_number: last }) => valuesQuery(study, metric, last)) });
  const found = curves.map(({ study }, index): Curve => ({ study, values: asked[index]?.data ?? [] }));
  const unit = unitOf({ metric, unit: curves[0]?.unit ?? "" });
  // The values change only with the data of the queries.
  const times = asked.map(({ dataUpdatedAt }) => dataUpdatedAt).join();
  // eslint-disable-next-line react-hooks/exhaustive-deps
  const option = useCallback((palette: Palette) => optionOf(found, metric, unit, palette), [times, metric, unit]);
  const error = asked.find((one) => one.error !== null)?.error ?? null;
  const counts = found.map(({ study, values }) => `${study}: ${plural(values.length, { one: "# trial", other: "# trials" })}`).join(", ");
  return (
    <Card title={t`Distribution of ${metric}`}>
      {error === null ? null : <Problem error={error} />}
      <Chart name={`${metric}-distributions`} height={320} label={t`Share of the trials of each study by ${metric}: ${counts}`} option={option} />
    </Card>
  );
}

function optionOf(curves: readonly Curve[], metric: string, unit: string, palette: Palette): EChartsOption {
  return {
    ...frame(palette),
    grid: { left: 12, right: 24, top: 60, bottom: 26, containLabel: true },
    legend: { top: 0, left: 0, right: 48, type: "scroll", textStyle: { color: palette.text, fontSize: 13 } },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value, seriesName = "" } = item as unknown as { value: number[]; seriesName?: string };
        return `${seriesName}\n${t`${formatPercent(value[1] ?? NaN)} of the trials: at most ${formatMetric(value[0] ?? NaN, unit)}`}`;
      },
    },
    xAxis: { type: "value", scale: true, name: metric, nameLocation: "middle", nameGap: 28, ...scaleAxis(palette, (value) => formatMetric(value, unit, 6)) },
    yAxis: { type: "value", min: 0, max: 1, name: t`share of trials`, ...scaleAxis(palette, (value) => `${Math.round(100 * value)} %`), nameLocation: "end", nameTextStyle: { color: palette.soft, fontSize: 12, align: "left" } },
    series: curves.map(({ study, values }, index) => {
      const corners = distribution(values);
      return {
        type: "line" as const,
        name: study,
        step: "end" as const,
        data: corners.length === 0 ? [] : [[corners[0]?.[0] ?? 0, 0], ...corners],
        showSymbol: corners.length < 60,
        symbolSize: 5,
        color: palette.series[index % palette.series.length] ?? palette.accent,
        // Dashed lines reuse the colours when there are more curves than colours.
        lineStyle: { width: 2, type: index < palette.series.length ? ("solid" as const) : ("dashed" as const) },
      };
    }),
  };
}
