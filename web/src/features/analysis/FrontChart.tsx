import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis } from "@/components/plot";
import type { Objective, Parameter } from "@/lib/api/client";
import { formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import { allowed, colouring, frontOf, membersOf, sizeOf, usePick, type Point } from "./front";

interface Props {
  study: string;
  first: Objective;
  second: Objective;
  points: Point[];
  standard: number | undefined;
  /** The first trials of the Pareto set, if these two are all objectives. A model may know that others were lucky. */
  members?: readonly number[] | undefined;
  /** The parameter whose values give the colours; undefined: only the front is marked. */
  colour?: Parameter | undefined;
  /** The parameter whose values give the sizes; undefined: all points are of one size. */
  size?: Parameter | undefined;
  /** The first trial of the chosen configuration, which has a ring. */
  chosen?: number | undefined;
  /** Whether the chart is as wide as the page. */
  wide?: boolean;
  onPick: (trial: number) => void;
}

/** Plot two objectives against each other, with their Pareto front. */
export function FrontChart({ study, first, second, points, standard, members, colour, size, chosen, wide = false, onPick }: Props) {
  const known = useMemo(() => membersOf(points, members, first.metric), [points, members, first]);
  const measured = useMemo(() => frontOf(allowed(points), [first, second]), [points, first, second]);
  // The measured values of members that others seem to dominate are no steps.
  const line = known === undefined || known.every((place) => measured.includes(place));
  const front = useMemo(() => (line ? measured.filter((place) => known === undefined || known.includes(place)) : known), [known, measured, line]);
  const option = useCallback((palette: Palette) => frontOption(palette, { first, second, points, front, line, standard, colour, size, chosen }), [first, second, points, front, line, standard, colour, size, chosen]);
  const pick = usePick(onPick);
  return (
    <Chart
      name={`${study}-front-${first.metric}-${second.metric}`}
      label={t`${second.metric} against ${first.metric} of ${plural(points.length, { one: "# configuration", other: "# configurations" })}; ${formatNumber(front.length)} are on the Pareto front.`}
      height={wide ? 460 : 320}
      zooms option={option}
      onPick={pick}
    />
  );
}

interface FrontInput {
  first: Objective;
  second: Objective;
  points: Point[];
  front: number[];
  line: boolean;
  standard: number | undefined;
  colour: Parameter | undefined;
  size: Parameter | undefined;
  chosen: number | undefined;
}

function frontOption(palette: Palette, { first, second, points, front, line, standard, colour, size, chosen }: FrontInput): EChartsOption {
  const at = ({ number, values }: Point) => [values[first.metric] ?? NaN, values[second.metric] ?? NaN, number];
  const paint = colour === undefined ? undefined : colouring(palette, colour);
  const sized = (point: Point) => (size === undefined ? {} : { symbolSize: sizeOf(size, point.params?.[size.name]) });
  const item = (point: Point) => ({ value: at(point), ...sized(point), itemStyle: paint === undefined ? {} : { color: paint(point.params?.[colour?.name ?? ""]), opacity: 0.9 } });
  const leads = new Set(front);
  const [color, other] = [palette.series[1] ?? palette.warn, palette.series[0] ?? palette.accent];
  const scale = (objective: Objective) => ({
    type: "value" as const,
    scale: true,
    ...scaleAxis(palette, (value) => formatMetric(value, unitOf(objective), 6)),
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
        const point = points.find(({ number }) => number === value[2]);
        const shown = [...new Set([colour, size])].map((one) => (one === undefined ? "" : `\n${one.name} ${formatValue(point?.params?.[one.name], one.unit)}`)).join("");
        return `${trial}\n${first.metric} ${formatMetric(value[0] ?? NaN, unitOf(first))}\n${second.metric} ${formatMetric(value[1] ?? NaN, unitOf(second))}${shown}`;
      },
    },
    xAxis: { ...scale(first), nameLocation: "middle", nameGap: 28 },
    yAxis: { ...scale(second), nameLocation: "end", nameTextStyle: { color: palette.soft, fontSize: 12, align: "left" } },
    series: [
      { type: "scatter", id: "dominated", data: points.filter((_, place) => !leads.has(place)).map(item), symbolSize: paint === undefined ? 6 : 8, itemStyle: { color: other, opacity: 0.4 } },
      {
        type: "line",
        id: "front",
        // Steps are in the order of the first objective, beginning with its best value.
        step: "end",
        data: front.flatMap((place) => (points[place] === undefined ? [] : [item(points[place])])),
        symbol: "circle",
        symbolSize: paint === undefined ? 9 : 12,
        lineStyle: { color, width: line ? 1.5 : 0 },
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
      {
        type: "scatter",
        id: "chosen",
        silent: true,
        data: points.filter(({ number }) => number === chosen).map(at),
        symbolSize: 22,
        itemStyle: { color: "transparent", borderColor: palette.accent, borderWidth: 3 },
      },
    ],
  };
}
