import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useState } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis } from "@/components/plot";
import { Segments } from "@/components/Segments";
import type { Comparison } from "@/lib/api/client";
import { formatPercent, formatMetric, formatNumber, unitOf } from "@/lib/format";
import { pointsOf, valueAt, type Scale } from "./curves";

// The longest name of a saved plot.
const MOST_LETTERS = 120;

/** Plot the best single measurement so far of several studies in one chart. */
export function ComparisonChart({ comparison }: { comparison: Comparison }) {
  const [scale, setScale] = useState<Scale>("trial");
  const [axis, setAxis] = useState<"value" | "log">("value");
  const positive = comparison.curves.every(({ values }) => values.every((value) => value > 0));
  const shownAxis: "value" | "log" = positive ? axis : "value";
  const option = useCallback((palette: Palette) => optionOf(comparison, scale, shownAxis, palette), [comparison, scale, shownAxis]);
  return (
    <Card
      title={t`Best single run of ${comparison.metric} so far`}
      actions={
        <>
          <Segments
            label={t`Horizontal axis`}
            value={scale}
            onChange={setScale}
            options={[
              { value: "trial", text: t`Trials` },
              { value: "share", text: t`Search progress` },
            ]}
          />
          <Segments
            label={t`Scale`}
            value={shownAxis}
            onChange={setAxis}
            options={[
              { value: "value", text: t`Linear` },
              { value: "log", text: t`Log`, disabled: !positive },
            ]}
          />
        </>
      }
    >
      <Chart name={`${comparison.curves.map(({ study }) => study).join("-")}-${comparison.metric}`.slice(0, MOST_LETTERS)} height={420} label={describe(comparison)} option={option} />
    </Card>
  );
}

function describe({ metric, curves }: Comparison): string {
  const ends = curves.map(({ study, unit, values }) => {
    const last = values.at(-1);
    return `${study}: ${last === undefined ? t`no measurements` : formatMetric(last, unitOf({ metric, unit }))}`;
  });
  return t`Best single run of ${metric} so far: ${ends.join(", ")}`;
}

function optionOf(comparison: Comparison, scale: Scale, axis: "value" | "log", palette: Palette): EChartsOption {
  const unit = unitOf({ metric: comparison.metric, unit: comparison.curves[0]?.unit ?? "" });
  return {
    ...frame(palette),
    grid: { left: 12, right: 18, top: 44, bottom: 26, containLabel: true },
    legend: { top: 0, left: 0, right: 48, type: "scroll", textStyle: { color: palette.text, fontSize: 13 } },
    tooltip: {
      ...frame(palette).tooltip,
      trigger: "axis",
      formatter: (items) => {
        const [at = NaN] = (Array.isArray(items) ? items : [items])[0]?.value as number[];
        const lines = comparison.curves.flatMap((curve) => {
          const value = valueAt(curve, scale, at);
          return value === undefined ? [] : [`${curve.study}: ${formatMetric(value, unit)}`];
        });
        return [scale === "share" ? t`After ${formatPercent(at)} of the search` : t`Trial ${formatNumber(at)}`, ...lines].join("\n");
      },
    },
    xAxis: {
      type: "value",
      name: scale === "share" ? t`search progress` : t`trial`,
      nameLocation: "middle",
      nameGap: 26,
      ...scaleAxis(palette, (value) => (scale === "share" ? `${Math.round(100 * value)} %` : formatNumber(value))),
      splitLine: { show: false },
      ...(scale === "share" ? { max: 1 } : { minInterval: 1 }),
    },
    yAxis: { type: axis, scale: true, ...scaleAxis(palette, (value) => formatMetric(value, unit)) },
    series: comparison.curves.map((curve, index) => ({
      type: "line" as const,
      name: curve.study,
      step: "end" as const,
      data: pointsOf(curve, scale),
      showSymbol: curve.numbers.length < 40,
      symbolSize: 5,
      color: palette.series[index % palette.series.length] ?? palette.accent,
      // Dashed lines reuse the colours when there are more curves than colours.
      lineStyle: { width: 2, type: index < palette.series.length ? ("solid" as const) : ("dashed" as const) },
    })),
  };
}
