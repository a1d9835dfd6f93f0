import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis } from "@/components/plot";
import type { Objective } from "@/lib/api/client";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { frontOf, type Point } from "./front";
import { usePick } from "./usePick";

interface Props {
  study: string;
  first: Objective;
  second: Objective;
  points: Point[];
  standard: number | undefined;
  onPick: (trial: number) => void;
}

/** Plot two objectives against each other, with their Pareto front. */
export function FrontChart({ study, first, second, points, standard, onPick }: Props) {
  const front = useMemo(
    () =>
      frontOf(
        points.map(({ values }) => values),
        [first, second],
      ),
    [points, first, second],
  );
  const option = useCallback((palette: Palette) => frontOption(palette, first, second, points, front, standard), [first, second, points, front, standard]);
  const pick = usePick(onPick);
  return (
    <Chart
      name={`${study}-front-${first.metric}-${second.metric}`}
      label={t`${second.metric} against ${first.metric} of ${plural(points.length, { one: "# configuration", other: "# configurations" })}; ${formatNumber(front.length)} are on the Pareto front.`}
      height={300}
      option={option}
      onPick={pick}
    />
  );
}

function frontOption(palette: Palette, first: Objective, second: Objective, points: Point[], front: number[], standard: number | undefined): EChartsOption {
  const at = ({ number, values }: Point) => [values[first.metric] ?? NaN, values[second.metric] ?? NaN, number];
  const leads = new Set(front);
  const [color, other] = [palette.series[1] ?? palette.warn, palette.series[0] ?? palette.accent];
  const scale = (objective: Objective) => ({
    type: "value" as const,
    scale: true,
    ...scaleAxis(palette, (value) => formatMetric(value, unitOf(objective), 3)),
    name: objective.goal === "minimize" ? t`${objective.metric} (less is better)` : t`${objective.metric} (more is better)`,
  });
  return {
    ...frame(palette),
    grid: { left: 12, right: 18, top: 30, bottom: 26, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value, seriesId } = item as unknown as { value: number[]; seriesId: string };
        const trial = seriesId === "default" ? t`Trial ${value[2] ?? ""}, the default` : t`Trial ${value[2] ?? ""}`;
        return `${trial}\n${first.metric} ${formatMetric(value[0] ?? NaN, unitOf(first))}\n${second.metric} ${formatMetric(value[1] ?? NaN, unitOf(second))}`;
      },
    },
    xAxis: { ...scale(first), nameLocation: "middle", nameGap: 28 },
    yAxis: { ...scale(second), nameLocation: "end", nameTextStyle: { color: palette.soft, fontSize: 12, align: "left" } },
    series: [
      { type: "scatter", id: "dominated", data: points.filter((_, place) => !leads.has(place)).map(at), symbolSize: 6, itemStyle: { color: other, opacity: 0.4 } },
      {
        type: "line",
        id: "front",
        // In the order of the first objective, beginning with its best value.
        step: "end",
        data: front.flatMap((place) => (points[place] === undefined ? [] : [at(points[place])])),
        symbol: "circle",
        symbolSize: 9,
        lineStyle: { color, width: 1.5 },
        itemStyle: { color },
      },
      {
        type: "scatter",
        id: "default",
        data: points.filter(({ number }) => number === standard).map(at),
        symbol: "diamond",
        symbolSize: 14,
        itemStyle: { color: palette.surface, borderColor: palette.text, borderWidth: 2 },
      },
    ],
  };
}
