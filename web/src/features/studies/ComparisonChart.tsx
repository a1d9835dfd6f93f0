import type { EChartsOption } from "echarts";
import { useCallback, useState } from "react";
import { Card } from "@/components/Card";
import { Chart, type Palette } from "@/components/Chart";
import { Segments } from "@/components/Segments";
import type { Comparison } from "@/lib/api/client";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { pointsOf, type Scale } from "./curves";

// Okabe and Ito's colours, told apart by all eyes; lines beyond them are dashed.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];

/** The best single measurement so far of several studies, laid over each other. */
export function ComparisonChart({ comparison }: { comparison: Comparison }) {
  const [scale, setScale] = useState<Scale>("trial");
  const [axis, setAxis] = useState<"value" | "log">("value");
  const positive = comparison.curves.every(({ values }) => values.every((value) => value > 0));
  const shownAxis = positive ? axis : "value";
  const option = useCallback((palette: Palette) => optionOf(comparison, scale, shownAxis, palette), [comparison, scale, shownAxis]);
  return (
    <Card
      title={`Best ${comparison.metric} so far`}
      actions={
        <>
          <Segments
            label="Across"
            value={scale}
            onChange={setScale}
            options={[
              { value: "trial", text: "Trials" },
              { value: "share", text: "Share of the search" },
            ]}
          />
          <Segments
            label="Scale"
            value={shownAxis}
            onChange={setAxis}
            options={[
              { value: "value", text: "Linear" },
              { value: "log", text: "Log", disabled: !positive },
            ]}
          />
        </>
      }
    >
      <Chart height={420} label={describe(comparison)} option={option} />
    </Card>
  );
}

function describe({ metric, curves }: Comparison): string {
  const ends = curves.map(({ study, unit, values }) => {
    const last = values.at(-1);
    return `${study}: ${last === undefined ? "nothing measured" : formatMetric(last, unitOf({ metric, unit }))}`;
  });
  return `Best ${metric} so far of ${ends.join(", ")}`;
}

function optionOf(comparison: Comparison, scale: Scale, axis: "value" | "log", palette: Palette): EChartsOption {
  const unit = unitOf({ metric: comparison.metric, unit: comparison.curves[0]?.unit ?? "" });
  const text = { color: palette.soft, fontFamily: palette.font };
  const line = { lineStyle: { color: palette.line } };
  return {
    animation: false,
    grid: { left: 12, right: 18, top: 44, bottom: 26, containLabel: true },
    legend: { top: 0, type: "scroll", textStyle: { ...text, color: palette.text } },
    tooltip: {
      trigger: "axis",
      backgroundColor: palette.surface,
      borderColor: palette.line,
      textStyle: { color: palette.text, fontFamily: palette.font },
      valueFormatter: (value) => (typeof value === "number" ? formatMetric(value, unit) : "—"),
    },
    xAxis: {
      type: "value",
      name: scale === "share" ? "share of the search" : "trial",
      nameLocation: "middle",
      nameGap: 26,
      nameTextStyle: text,
      axisLabel: { ...text, formatter: (value: number) => (scale === "share" ? `${Math.round(100 * value)} %` : formatNumber(value)) },
      axisLine: line,
      splitLine: { show: false },
      ...(scale === "share" ? { max: 1 } : { minInterval: 1 }),
    },
    yAxis: {
      type: axis,
      scale: true,
      axisLabel: { ...text, formatter: (value: number) => formatMetric(value, unit) },
      splitLine: line,
    },
    series: comparison.curves.map((curve, index) => ({
      type: "line" as const,
      name: curve.study,
      step: "end" as const,
      data: pointsOf(curve, scale),
      showSymbol: curve.numbers.length < 40,
      symbolSize: 5,
      color: COLOURS[index % COLOURS.length] ?? palette.accent,
      lineStyle: { width: 2, type: index < COLOURS.length ? ("solid" as const) : ("dashed" as const) },
    })),
  };
}
