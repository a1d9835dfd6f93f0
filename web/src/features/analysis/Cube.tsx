import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo, useRef, useState, type PointerEvent } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame } from "@/components/plot";
import { Select } from "@/components/Select";
import type { Objective } from "@/lib/api/client";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { allowed, dragged, frontOf, membersOf, project, usePick, type Point, type View } from "./front";
import styles from "./analysis.module.css";

interface Props {
  study: string;
  objectives: Objective[];
  points: Point[];
  standard: number | undefined;
  /** The first trials of the Pareto set, if there are three objectives. */
  members?: readonly number[] | undefined;
  onPick: (trial: number) => void;
}

/** In this view all three axes lie on the cube's outline, so that their labels cover no points. */
const FIRST_VIEW: View = { turn: 150, tilt: 20 };

/** Plot three objectives in space. The plot can be rotated by dragging or with two sliders. */
export function Cube({ study, objectives, points, standard, members, onPick }: Props) {
  const [chosen, choose] = useState(() => objectives.slice(0, 3).map(({ metric }) => metric));
  const [view, setView] = useState<View>(FIRST_VIEW);
  const { turn, tilt } = view;
  const drag = useDrag((right, down) => setView((before) => dragged(before, right, down)));
  const axes = useMemo(() => chosen.map((metric) => objectives.find((objective) => objective.metric === metric)).filter((one) => one !== undefined), [chosen, objectives]);
  const front = useMemo(() => membersOf(points, members, axes[0]?.metric ?? "") ?? frontOf(allowed(points), axes), [points, members, axes]);
  const option = useCallback((palette: Palette) => cubeOption(palette, axes, points, front, standard, turn, tilt), [axes, points, front, standard, turn, tilt]);
  const pick = usePick(onPick);
  return (
    <Card
      title={t`Three objectives`}
      actions={
        objectives.length > 3
          ? chosen.map((metric, index) => (
              <Select
                key={index}
                label={t`Axis ${index + 1}`}
                value={metric}
                onChange={(other) => choose(chosen.map((one, place) => (place === index ? other : one === other ? metric : one)))}
                options={objectives.map((objective) => ({ value: objective.metric, text: objective.metric }))}
              />
            ))
          : undefined
      }
    >
      <div className={styles.cube} {...drag}>
        <Chart
          name={`${study}-front-3d`}
          label={t`${axes.map(({ metric }) => metric).join(", ")} of ${plural(points.length, { one: "# configuration", other: "# configurations" })} in three dimensions; ${formatNumber(front.length)} are on the Pareto front.`}
          height={400}
          option={option}
          onPick={pick}
        />
      </div>
      <div className={styles.sliders}>
        <label>
          {t`Rotate`} <input type="range" min={-180} max={180} value={turn} onChange={(event) => setView({ turn: Number(event.target.value), tilt })} />
        </label>
        <label>
          {t`Tilt`} <input type="range" min={-90} max={90} value={tilt} onChange={(event) => setView({ turn, tilt: Number(event.target.value) })} />
        </label>
      </div>
    </Card>
  );
}

// Pixels: ECharts still counts a press as a click if the pointer moves no further than this.
const STILL = 4;

/** Return the handlers of a draggable element. `move` gets the distance in pixels since its last call. */
function useDrag(move: (right: number, down: number) => void) {
  const last = useRef<{ pointer: number; x: number; y: number } | null>(null);
  const end = () => {
    last.current = null;
  };
  return {
    onPointerDown: ({ pointerId, isPrimary, button, clientX, clientY }: PointerEvent) => {
      if (isPrimary && button === 0) last.current = { pointer: pointerId, x: clientX, y: clientY };
    },
    onPointerMove: ({ pointerId, buttons, clientX, clientY, currentTarget }: PointerEvent) => {
      const from = last.current;
      if (from?.pointer !== pointerId) return;
      // The button was released outside, before the pointer was captured.
      if (buttons === 0) {
        end();
        return;
      }
      const [right, down] = [clientX - from.x, clientY - from.y];
      // From here on follow the pointer outside of the plot too. An earlier capture would take the click from the point.
      if (!currentTarget.hasPointerCapture(pointerId)) {
        if (Math.hypot(right, down) <= STILL) return;
        currentTarget.setPointerCapture(pointerId);
      }
      last.current = { pointer: pointerId, x: clientX, y: clientY };
      move(right, down);
    },
    onPointerUp: end,
    onPointerCancel: end,
  };
}

type Corner = [number, number, number];
const CORNERS: Corner[] = [0, 1].flatMap((x) => [0, 1].flatMap((y) => [0, 1].map((z): Corner => [x, y, z])));

function cubeOption(palette: Palette, axes: Objective[], points: Point[], front: number[], standard: number | undefined, turn: number, tilt: number): EChartsOption {
  const ranges = axes.map(({ metric }) => {
    const values = points.map(({ values }) => values[metric] ?? NaN).filter(Number.isFinite);
    return [Math.min(...values), Math.max(...values)] as const;
  });
  const place = ({ values }: Point): [number, number] => {
    const [x = 0, y = 0, z = 0] = axes.map(({ metric }, index) => {
      const [low = 0, high = 1] = ranges[index] ?? [];
      return high > low ? ((values[metric] ?? NaN) - low) / (high - low) : 0.5;
    });
    return project([x, y, z], turn, tilt);
  };
  const leads = new Set(front);
  const edges = CORNERS.flatMap((from) =>
    [0, 1, 2].filter((index) => from[index] === 0).map((index) => [project(from, turn, tilt), project(from.map((one, other) => (other === index ? 1 : one)) as Corner, turn, tilt)]),
  );
  // At the end of each edge that begins at the corner where all three values are lowest.
  const names = axes.map((objective, index) => {
    const end: Corner = [0, 0, 0];
    end[index] = 1.08;
    const [low = NaN, high = NaN] = ranges[index] ?? [];
    const unit = unitOf(objective);
    const value = project(end, turn, tilt);
    // On the side away from the middle.
    const label = { position: value[1] < 0 ? ("bottom" as const) : ("top" as const) };
    return { value, label, name: `${objective.metric}\n${t`${formatMetric(low, unit, 3)} to ${formatMetric(high, unit, 3)}`}` };
  });
  const data = (lead: boolean) =>
    points.flatMap((point, index) => (leads.has(index) === lead ? [[...place(point), point.number, ...axes.map(({ metric }) => point.values[metric] ?? NaN)]] : []));
  // Leave space for the names on all sides.
  const hidden = (most: number) => ({ type: "value" as const, min: -most, max: most, show: false });
  return {
    ...frame(palette),
    grid: { left: 8, right: 8, top: 8, bottom: 8 },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value } = item as unknown as { value: number[] };
        return [t`Trial ${value[2] ?? ""}`, ...axes.map((objective, index) => `${objective.metric} ${formatMetric(value[3 + index] ?? NaN, unitOf(objective))}`)].join("\n");
      },
    },
    xAxis: hidden(1.15),
    yAxis: hidden(1.05),
    series: [
      ...edges.map((edge) => ({ type: "line" as const, data: edge, symbol: "none", silent: true, lineStyle: { color: palette.line, width: 1 } })),
      {
        type: "scatter" as const,
        data: names,
        symbolSize: 0.1,
        silent: true,
        label: { show: true, formatter: "{b}", color: palette.text, fontSize: 13, lineHeight: 18, width: 100, overflow: "break" },
      },
      { type: "scatter" as const, data: data(false), symbolSize: 6, itemStyle: { color: palette.series[0] ?? palette.accent, opacity: 0.4 } },
      { type: "scatter" as const, data: data(true), symbolSize: 10, itemStyle: { color: palette.series[1] ?? palette.warn } },
      {
        type: "scatter" as const,
        data: points.filter(({ number }) => number === standard).map((point) => [...place(point), point.number, ...axes.map(({ metric }) => point.values[metric] ?? NaN)]),
        symbol: "diamond",
        symbolSize: 14,
        itemStyle: { color: palette.surface, borderColor: palette.text, borderWidth: 2 },
      },
    ],
  };
}
