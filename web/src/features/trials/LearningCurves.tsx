import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import type { CustomSeriesRenderItemAPI, CustomSeriesRenderItemParams, EChartsOption } from "echarts";
import { useCallback, useMemo, useState } from "react";
import { stateText } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Chart, Legend, LegendItem } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis } from "@/components/plot";
import type { Curves, Objective, TrialState } from "@/lib/api/client";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { curvesQuery } from "./api";
import styles from "./LearningCurves.module.css";

interface Props {
  study: string;
  /** How many trials have finished: the curves are fetched again when it changes. */
  finished: number;
  objective: Objective;
  /** Numbers of the trials that measured the best configuration. */
  best: ReadonlySet<number>;
  onPick: (trial: number) => void;
}

/** The kinds of curves, each with its own colour; those that end a trial's own way come above the others. */
type Kind = "best" | "pruned" | "running" | "other";
const KINDS: readonly Kind[] = ["other", "running", "pruned", "best"];

/** Plot the measurements of all trials at their steps; nothing if no trial has reported any. */
export function LearningCurves({ study, finished, objective, best, onPick }: Props) {
  const { metric } = objective;
  const { data } = useQuery(curvesQuery(study, finished, metric, [...best].slice(0, 20)));
  const [hidden, hide] = useState<ReadonlySet<Kind>>(new Set());
  const counts = useMemo(() => countsOf(data, best), [data, best]);
  const option = useCallback((palette: Palette) => curvesOption(palette, data, best, hidden, objective), [data, best, hidden, objective]);
  if (data === undefined || data.curves.length === 0) return null;
  const shown = data.curves.length;
  const text =
    data.total > shown
      ? t`The chart shows a uniform sample: ${formatNumber(shown)} of ${plural(data.total, { one: "# trial with measurements", other: "# trials with measurements" })}.`
      : t`The values of ${metric} that ${plural(shown, { one: "# trial has", other: "# trials have" })} reported while they ran.`;
  const toggle = (kind: Kind) => hide(hidden.has(kind) ? new Set([...hidden].filter((one) => one !== kind)) : new Set([...hidden, kind]));
  return (
    <Card title={t`Learning curves`}>
      <Legend>
        {[...KINDS].reverse().map((kind) => ((counts.get(kind) ?? 0) === 0 ? null : <LegendItem key={kind} look={`${styles.line} ${styles[kind]}`} text={`${kindText(kind)} (${formatNumber(counts.get(kind) ?? 0)})`} hidden={hidden.has(kind)} onToggle={() => toggle(kind)} />))}
      </Legend>
      <Chart
        name={`${study}-curves-${metric}`}
        label={text}
        height={340}
        zooms
        option={option}
        onPick={(picked) => {
          if (typeof picked === "object" && picked !== null && "trial" in picked && typeof picked.trial === "number") onPick(picked.trial);
        }}
      />
      <p className={styles.note}>{text}</p>
    </Card>
  );
}

function kindOf(trial: number, state: TrialState, best: ReadonlySet<number>): Kind {
  if (best.has(trial)) return "best";
  if (state === "PRUNED") return "pruned";
  return state === "ACTIVE" ? "running" : "other";
}

function kindText(kind: Kind): string {
  return { best: t`best configuration`, pruned: stateText("PRUNED"), running: stateText("ACTIVE"), other: t`other trials` }[kind];
}

function countsOf(data: Curves | undefined, best: ReadonlySet<number>): Map<Kind, number> {
  const counts = new Map<Kind, number>();
  for (const { trial, state } of data?.curves ?? []) {
    const kind = kindOf(trial, state, best);
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

/** Each curve is one item of a custom series, since a series for each trial would cost much more. */
function curvesOption(palette: Palette, data: Curves | undefined, best: ReadonlySet<number>, hidden: ReadonlySet<Kind>, objective: Objective): EChartsOption {
  const unit = unitOf(objective);
  const looks: Record<Kind, { stroke: string; lineWidth: number; opacity: number }> = {
    best: { stroke: palette.accent, lineWidth: 2.5, opacity: 1 },
    pruned: { stroke: palette.series[3] ?? palette.warn, lineWidth: 1.2, opacity: 0.55 },
    running: { stroke: palette.series[1] ?? palette.info, lineWidth: 1.5, opacity: 0.9 },
    other: { stroke: palette.soft, lineWidth: 1, opacity: 0.4 },
  };
  return {
    ...frame(palette),
    grid: { left: 12, right: 24, top: 32, bottom: 26, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { trial, last, state } = (item as unknown as { data: Item }).data;
        return `${t`Trial ${trial}`} (${stateText(state)})\n${t`step ${formatNumber(last[0])}: ${formatMetric(last[1], unit)}`}`;
      },
    },
    xAxis: { type: "value", scale: true, minInterval: 1, name: t`step`, nameLocation: "middle", nameGap: 28, ...axis(palette) },
    yAxis: { type: "value", scale: true, name: objective.metric, ...scaleAxis(palette, (value) => formatMetric(value, unit, 6)), nameLocation: "end", nameTextStyle: { color: palette.soft, fontSize: 12, align: "left" } },
    series: KINDS.filter((kind) => !hidden.has(kind)).map((kind) => {
      const curves = (data?.curves ?? []).filter(({ trial, state }) => kindOf(trial, state, best) === kind);
      return {
        type: "custom" as const,
        clip: true,
        encode: { x: [0, 1], y: [2, 3] },
        data: curves.map((curve) => itemOf(curve)),
        renderItem: ({ dataIndex }: CustomSeriesRenderItemParams, api: CustomSeriesRenderItemAPI) => {
          const { steps = [], values = [] } = curves[dataIndex] ?? {};
          const points = steps.map((step, place) => api.coord([step, values[place] ?? NaN]) as [number, number]);
          // eslint-disable-next-line lingui/no-unlocalized-strings -- no colour
          const style = { ...looks[kind], fill: "none" };
          // A single measurement has no line.
          const [only] = points;
          return points.length === 1 && only !== undefined
            ? { type: "circle" as const, shape: { cx: only[0], cy: only[1], r: 2.5 }, style: { ...style, fill: looks[kind].stroke } }
            : { type: "polyline" as const, shape: { points }, style, emphasis: { style: { lineWidth: 3, opacity: 1 } } };
        },
      };
    }),
  };
}

interface Item {
  value: [number, number, number, number];
  trial: number;
  state: TrialState;
  last: [number, number];
}

/** Return the data item of a curve: its extent, and what the tooltip says. */
export function itemOf({ trial, state, steps, values }: Curves["curves"][number]): Item {
  return {
    value: [steps[0] ?? 0, steps.at(-1) ?? 0, Math.min(...values), Math.max(...values)],
    trial,
    state,
    last: [steps.at(-1) ?? 0, values.at(-1) ?? NaN],
  };
}
