import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useEffect, useMemo, useRef, useState, type RefObject } from "react";
import { Button } from "@/components/Button";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { frame, shade } from "@/components/plot";
import { Popover } from "@/components/Popover";
import type { Objective, Parameter, StudySpec, Trial } from "@/lib/api/client";
import { formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import { choicesOf, isLogarithmic, isNumeric } from "@/lib/scale";
import { uniform } from "@/lib/sample";
import { titled } from "@/lib/space";
import styles from "./analysis.module.css";

const MOST_LINES = 1500;
/** Pixels: about the width of a letter of an axis' name, the longest name, and the usual distance between two axes. */
const LETTER = 7;
const LONGEST = 180;
const USUAL = 110;
/** The most parameters that are shown at first. */
const FIRST = 8;
/** Pixels: next to the outer axes, and above axes whose names are turned, since they do not fit side by side. */
const [LEFT, RIGHT, TURNED] = [14, 62, 96];

interface Props {
  study: string;
  spec: StudySpec;
  objective: Objective;
  trials: Trial[];
  /** The parameters, the most important first if that is known. */
  order: string[];
  best: ReadonlySet<number>;
}

/** Plot every trial as a line through its values. Dragging along an axis highlights the trials that pass there. */
export function ParallelCoordinates({ study, spec, objective, trials, order, best }: Props) {
  const [chosen, choose] = useState<string[] | null>(null);
  const [place, width] = useWidth();
  // As many parameters as fit, with the axis of the result, which is always shown.
  const fitting = Math.min(FIRST, Math.max(2, Math.floor((width - LEFT - RIGHT) / USUAL)));
  const shown = chosen ?? order.slice(0, fitting);
  const lines = useMemo(
    () =>
      uniform(
        trials.filter(({ state, metrics }) => state === "COMPLETED" && metrics?.[objective.metric] !== undefined),
        MOST_LINES,
      ),
    [trials, objective],
  );
  const completed = useMemo(() => trials.filter(({ state, metrics }) => state === "COMPLETED" && metrics?.[objective.metric] !== undefined).length, [trials, objective]);
  const parameters = useMemo(() => spec.space.parameters.filter(({ name }) => shown.includes(name)), [spec, shown]);
  const turned = spacing([...parameters.map(({ name, unit }) => titled(name, unit)), objective.metric]) * parameters.length > width - LEFT - RIGHT;
  const option = useCallback((palette: Palette) => parallelOption(palette, parameters, objective, lines, best, turned), [parameters, objective, lines, best, turned]);
  return (
    <>
      <div className={styles.choice}>
        <Popover
          label={t`Axes`}
          trigger={
            <Button small>
              {t`${formatNumber(shown.length)} of ${plural(order.length, { one: "# parameter", other: "# parameters" })}`}
            </Button>
          }
        >
          <ul className={styles.checks}>
            {order.map((name) => (
              <li key={name}>
                <label>
                  <input
                    type="checkbox"
                    checked={shown.includes(name)}
                    onChange={({ target: { checked } }) => choose(order.filter((one) => (one === name ? checked : shown.includes(one))))}
                  />
                  {name}
                </label>
              </li>
            ))}
          </ul>
        </Popover>
        <span className={styles.soft}>
          {t`Drag along an axis to highlight the trials that pass there.`}{" "}
          {lines.length < completed ? t`A uniform sample of ${formatNumber(lines.length)} of ${formatNumber(completed)} trials is shown.` : ""}
        </span>
      </div>
      <div ref={place}>
        <Chart
          name={`${study}-parallel-${objective.metric}`}
          label={t`${plural(lines.length, { one: "# trial as a line", other: "# trials as lines" })} through ${plural(parameters.length, { one: "# parameter", other: "# parameters" })} and ${objective.metric}.`}
          height={turned ? 400 : 360}
          option={option}
        />
      </div>
    </>
  );
}

/** Return the distance between two axes in pixels, so that their names do not overlap. */
function spacing(names: string[]): number {
  const widths = names.map((name) => Math.min(LETTER * name.length, LONGEST) + 14);
  // The names of the outer axes extend inwards with their full width.
  const sides = widths.slice(1).map((width, index) => {
    const [first, last] = [index === 0, index === widths.length - 2];
    return (widths[index] ?? 0) / (first ? 1 : 2) + width / (last ? 1 : 2);
  });
  return Math.max(0, ...sides);
}

function parallelOption(palette: Palette, parameters: Parameter[], objective: Objective, trials: Trial[], best: ReadonlySet<number>, turned: boolean): EChartsOption {
  const { metric } = objective;
  const unit = unitOf(objective);
  const values = trials.map(({ metrics }) => metrics?.[metric] ?? NaN);
  // By rank, so that a few outliers do not take up the colour scale.
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (value: number) => sorted.findIndex((one) => one >= value) / Math.max(sorted.length - 1, 1);
  // Many lines are faint, so that places where they meet are dark.
  const density = Math.min(1, Math.max(0.05, 120 / Math.max(trials.length, 1)));
  // Legible above the lines.
  const text = { color: palette.text, fontSize: 12, backgroundColor: palette.surface, borderRadius: 3, padding: [1, 3] };
  const common = (place: "left" | "center" | "right") => ({
    z: 10,
    axisLine: { lineStyle: { color: palette.soft } },
    axisTick: { lineStyle: { color: palette.line } },
    // The names of the outer axes extend inwards, since the plot ends there.
    nameTextStyle: { color: palette.text, fontSize: 12, align: turned ? ("left" as const) : place },
    ...(turned ? { nameRotate: 35 } : {}),
    nameTruncate: { maxWidth: turned ? TURNED : LONGEST, ellipsis: "…" },
  });
  const axes = parameters.map((parameter) => axisOf(parameter, trials, text));
  const drawn = trials.map((trial, index) => {
    const good = objective.goal === "minimize" ? 1 - rank(values[index] ?? NaN) : rank(values[index] ?? NaN);
    const leads = best.has(trial.number);
    return {
      name: t`Trial ${trial.number}`,
      value: [...axes.map((axis) => axis.written(trial)), values[index] ?? NaN],
      lineStyle: {
        color: leads ? (palette.series[1] ?? palette.warn) : shade([palette.soft, palette.series[0] ?? palette.accent], good),
        width: leads ? 3 : 1,
        opacity: leads ? 1 : density * (0.35 + 0.65 * good ** 2),
      },
      leads,
      good,
    };
  });
  // Draw the best on top.
  drawn.sort((a, b) => Number(a.leads) - Number(b.leads) || a.good - b.good);
  return {
    ...frame(palette),
    tooltip: { show: false },
    parallel: { left: LEFT, right: RIGHT, top: turned ? TURNED : 54, bottom: 18, parallelAxisDefault: { areaSelectStyle: { width: 18, color: palette.accent, borderColor: palette.accent, opacity: 0.25 } } },
    parallelAxis: [
      ...axes.map(({ scale }, dim) => ({ dim, ...common(dim === 0 ? "left" : "center"), ...scale })),
      {
        dim: parameters.length,
        name: metric,
        type: "value" as const,
        scale: true,
        ...common("right"),
        axisLabel: { ...text, formatter: (value: number) => formatMetric(value, unit, 3) },
      },
    ],
    series: [{ type: "parallel", data: drawn, inactiveOpacity: 0.03, activeOpacity: 0.9, smooth: false, progressive: 500 }],
  };
}

/** The share of an axis' length by which trials without a value (their condition is not met) lie below its range. */
const BELOW = 0.1;

/** Return a parameter's axis. Trials without a value get a separate place, so that their lines pass no value. */
export function axisOf(parameter: Parameter, trials: readonly Trial[], text: object) {
  const { name, unit, min = 0, max = 1 } = parameter;
  const title = titled(name, unit);
  const lacks = trials.some(({ params }) => params[name] === undefined);
  const none = t`none`;
  if (!isNumeric(parameter)) {
    const data = [...(lacks ? [none] : []), ...choicesOf(parameter).map((choice) => formatValue(choice))];
    const written = ({ params }: Trial) => (params[name] === undefined ? none : formatValue(params[name]));
    return { scale: { name: title, type: "category" as const, data, axisLabel: text }, written };
  }
  const log = isLogarithmic(parameter);
  const outside = log ? min * (min / max) ** BELOW : min - BELOW * (max - min);
  const written = ({ params }: Trial) => (typeof params[name] === "number" ? params[name] : outside);
  const formatter = (value: number) => (!lacks || value >= min ? formatValue(value) : value === outside ? none : "");
  const scale = { name: title, min: lacks ? outside : min, max, axisLabel: { ...text, formatter } };
  return { scale: log ? { ...scale, type: "log" as const } : { ...scale, type: "value" as const }, written };
}

/** Return a reference for an element, and the element's present width in pixels (before it is known, a usual one). */
function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [place, width];
}
