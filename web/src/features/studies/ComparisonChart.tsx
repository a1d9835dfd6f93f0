import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useState } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis } from "@/components/plot";
import { Segments } from "@/components/Select";
import type { Comparison } from "@/lib/api/client";
import { formatMetric, formatNumber, formatPercent, unitOf } from "@/lib/format";

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
      <Chart name={`${comparison.curves.map(({ study }) => study).join("-")}-${comparison.metric}`.slice(0, MOST_LETTERS)} height={420} label={describe(comparison)} zooms option={option} />
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

export type Curve = Comparison["curves"][number];
export type Scale = "trial" | "share";

/** Return the corners of a curve: a point for each trial that was better than all before it, and the end. With `share`, the trials of
 * each study count from 0 to 1, so that studies of different lengths can be compared. */
export function pointsOf(curve: Curve, scale: Scale): [number, number][] {
  const across = scale === "share" ? Math.max(curve.last_number, 1) : 1;
  const points = curve.numbers.map((number, index): [number, number] => [number / across, curve.values[index] ?? NaN]);
  const last = curve.values.at(-1);
  if (last !== undefined && curve.last_number > (curve.numbers.at(-1) ?? 0)) points.push([curve.last_number / across, last]);
  return points;
}

/** Return the best value so far at a place between the curve's first measurement and its end. */
export function valueAt(curve: Curve, scale: Scale, at: number): number | undefined {
  const points = pointsOf(curve, scale);
  const end = points.at(-1)?.[0];
  return end === undefined || at > end ? undefined : points.findLast(([x]) => x <= at)?.[1];
}
