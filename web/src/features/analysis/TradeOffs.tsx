import { plural, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo, useRef, useState, type PointerEvent } from "react";
import { Card } from "@/components/Card";
import { Chart, type Palette } from "@/components/Chart";
import { Legend } from "@/components/Legend";
import { frame, scaleAxis } from "@/components/plot";
import { Select } from "@/components/Select";
import { Wide } from "@/components/Wide";
import type { Dependence, InsightData, Objective } from "@/lib/api/client";
import { formatFixed, formatGain, formatMetric, formatNumber, unitOf } from "@/lib/format";
import { dragged, frontOf, project, type View } from "./front";
import styles from "./analysis.module.css";

/** A configuration that was measured: the number of its first trial and its values. */
export interface Point {
  number: number;
  values: Record<string, number>;
}

interface Props {
  study: string;
  objectives: Objective[];
  points: Point[];
  standard: number | undefined;
  data: InsightData | null;
  onPick: (trial: number) => void;
}

/** How objectives go together: fronts of every pair, of three in space, correlations, and which says nothing of its own. */
export function TradeOffs({ study, objectives, points, standard, data, onPick }: Props) {
  const pairs = objectives.flatMap((first, index) => objectives.slice(index + 1).map((second) => [first, second] as const));
  return (
    <>
      {data === null ? null : <Together objectives={objectives} data={data} />}
      <Legend>
        <li>
          <span className={styles.leads} aria-hidden="true" />
          {t`on the Pareto front: nothing is better in one objective without being worse in the other`}
        </li>
        <li>
          <span className={styles.follows} aria-hidden="true" />
          {t`other configurations`}
        </li>
        {standard === undefined ? null : (
          <li>
            <span className={styles.start} aria-hidden="true" />
            {t`the default`}
          </li>
        )}
      </Legend>
      <div className={styles.pairs}>
        {pairs.map(([first, second]) => (
          <Card key={`${first.metric} ${second.metric}`} title={t`${second.metric} against ${first.metric}`}>
            <Front study={study} first={first} second={second} points={points} standard={standard} onPick={onPick} />
          </Card>
        ))}
      </div>
      {objectives.length > 2 ? <Cube study={study} objectives={objectives} points={points} standard={standard} onPick={onPick} /> : null}
    </>
  );
}

interface FrontProps {
  study: string;
  first: Objective;
  second: Objective;
  points: Point[];
  standard: number | undefined;
  onPick: (trial: number) => void;
}

function Front({ study, first, second, points, standard, onPick }: FrontProps) {
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

/** What opens the trial of a point that was pressed: its number comes third. */
function usePick(onPick: (trial: number) => void) {
  return useCallback(
    (item: unknown) => {
      if (Array.isArray(item) && typeof item[2] === "number") onPick(item[2]);
    },
    [onPick],
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
        // In the order of the first objective, from its best on, whichever way is better.
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

/** From here all three axes go along the cube's outline: what is written at their ends lies on no point. */
const FIRST_VIEW: View = { turn: 150, tilt: 20 };

function Cube({ study, objectives, points, standard, onPick }: Omit<Props, "data">) {
  const [chosen, choose] = useState(() => objectives.slice(0, 3).map(({ metric }) => metric));
  const [view, setView] = useState<View>(FIRST_VIEW);
  const { turn, tilt } = view;
  const drag = useDrag((right, down) => setView((before) => dragged(before, right, down)));
  const axes = useMemo(() => chosen.map((metric) => objectives.find((objective) => objective.metric === metric)).filter((one) => one !== undefined), [chosen, objectives]);
  const front = useMemo(
    () =>
      frontOf(
        points.map(({ values }) => values),
        axes,
      ),
    [points, axes],
  );
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
          label={t`${axes.map(({ metric }) => metric).join(", ")} of ${plural(points.length, { one: "# configuration", other: "# configurations" })} in space; ${formatNumber(front.length)} are on the Pareto front.`}
          height={400}
          option={option}
          onPick={pick}
        />
      </div>
      <div className={styles.sliders}>
        <label>
          {t`Turn`} <input type="range" min={-180} max={180} value={turn} onChange={(event) => setView({ turn: Number(event.target.value), tilt })} />
        </label>
        <label>
          {t`Tilt`} <input type="range" min={-90} max={90} value={tilt} onChange={(event) => setView({ turn, tilt: Number(event.target.value) })} />
        </label>
      </div>
    </Card>
  );
}

// So far a pointer moves in a press that is none the less a press, as ECharts sees it.
const STILL = 4;

/** What an element needs that is dragged by mouse, pen or finger; `move`: by how many pixels since it was called last. */
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
      // It was let go outside, before it was followed there.
      if (buttons === 0) {
        end();
        return;
      }
      const [right, down] = [clientX - from.x, clientY - from.y];
      // From then on it is followed out of the plot too; before, a press would lose what it presses.
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
  // At the end of each edge that goes out from where all three are lowest.
  const names = axes.map((objective, index) => {
    const end: Corner = [0, 0, 0];
    end[index] = 1.08;
    const [low = NaN, high = NaN] = ranges[index] ?? [];
    const unit = unitOf(objective);
    const value = project(end, turn, tilt);
    // Away from the middle.
    const label = { position: value[1] < 0 ? ("bottom" as const) : ("top" as const) };
    return { value, label, name: `${objective.metric}\n${t`${formatMetric(low, unit, 3)} to ${formatMetric(high, unit, 3)}`}` };
  });
  const data = (lead: boolean) =>
    points.flatMap((point, index) => (leads.has(index) === lead ? [[...place(point), point.number, ...axes.map(({ metric }) => point.values[metric] ?? NaN)]] : []));
  // With room for the names on all sides.
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

/** Correlations, and the objectives that follow from others. */
function Together({ objectives, data }: { objectives: Objective[]; data: InsightData }) {
  return (
    <Card title={t`How objectives go together`}>
      <Wide label={t`Correlations`}>
        <table className={`${styles.table} ${styles.matrix}`}>
          <caption className="visually-hidden">{t`Correlations of objectives`}</caption>
          <thead>
            <tr>
              <td />
              {objectives.map(({ metric }) => (
                <th key={metric} scope="col">
                  {metric}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {objectives.map(({ metric }, row) => (
              <tr key={metric}>
                <th scope="row">{metric}</th>
                {objectives.map((other, column) => (
                  <Correlation key={other.metric} value={data.correlations[row]?.[column] ?? null} own={row === column} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {relations(data.dependences).map(({ metric, coefficients, constant, explained }) => (
        <p key={metric} className={styles.sentence}>
          <Trans>
            {[metric, ...Object.keys(coefficients)].join(", ")} depend on each other: <b>{metric}</b> = {linear(coefficients, constant)}, which explains{" "}
            {formatGain(explained)} of it. One of them says nothing of its own: the search is easier without it.
          </Trans>
        </p>
      ))}
      {data.dependences.length === 0 ? <p className={styles.note}>{t`No objective is a linear function of the others. Correlations are Pearson’s, over configurations.`}</p> : null}
    </Card>
  );
}

function Correlation({ value, own }: { value: number | null; own: boolean }) {
  if (value === null) return <td>—</td>;
  const strength = own ? 0 : Math.round(Math.abs(value) * 45);
  return <td style={{ background: `color-mix(in srgb, var(--series-${value < 0 ? 2 : 1}) ${strength}%, transparent)` }}>{formatFixed(value, 2)}</td>;
}

/** Each relation once, whichever of its objectives it was found for; the last of the study's first, as the one that was added. */
function relations(dependences: Dependence[]): Dependence[] {
  const found = new Map<string, Dependence>();
  for (const one of dependences) found.set([one.metric, ...Object.keys(one.coefficients)].sort().join(" "), one);
  return [...found.values()];
}

function linear(coefficients: Record<string, number>, constant: number): string {
  const terms = Object.entries(coefficients).map(([metric, slope]) => `${formatNumber(slope)} · ${metric}`);
  if (Math.abs(constant) > 1e-9 || terms.length === 0) terms.push(formatNumber(constant));
  return terms.join(" + ").replaceAll("+ \u2212", "\u2212 ");
}
