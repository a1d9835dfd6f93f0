import type { EChartsOption } from "echarts";
import { useCallback, useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { Chart, type Palette } from "@/components/Chart";
import { Popover } from "@/components/Popover";
import { frame, shade } from "@/components/plot";
import { Wide } from "@/components/Wide";
import type { Objective, Parameter, StudySpec, Trial } from "@/lib/api/client";
import { formatMetric, formatValue, unitOf } from "@/lib/format";
import { choicesOf, isLogarithmic, isNumeric } from "@/lib/scale";
import styles from "./analysis.module.css";

const FIRST = 8;
const MOST_LINES = 1500;

interface Props {
  study: string;
  spec: StudySpec;
  objective: Objective;
  trials: Trial[];
  /** The parameters, the most important first, as far as that is known. */
  order: string[];
  best: ReadonlySet<number>;
}

/** Every trial as a line through its values; press and pull along an axis to keep those that pass there. */
export function ParallelCoordinates({ study, spec, objective, trials, order, best }: Props) {
  const [chosen, choose] = useState<string[] | null>(null);
  const shown = chosen ?? order.slice(0, FIRST);
  const lines = useMemo(
    () => trials.filter(({ state, metrics }) => state === "COMPLETED" && metrics?.[objective.metric] !== undefined).slice(-MOST_LINES),
    [trials, objective],
  );
  const parameters = useMemo(() => spec.space.parameters.filter(({ name }) => shown.includes(name)), [spec, shown]);
  const option = useCallback((palette: Palette) => parallelOption(palette, parameters, objective, lines, best), [parameters, objective, lines, best]);
  return (
    <>
      <div className={styles.choice}>
        <Popover
          label="Axes"
          trigger={
            <Button small>
              {shown.length} of {order.length} parameters
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
          Press and pull along an axis to keep the trials that pass there.
          {lines.length === MOST_LINES ? ` The latest ${MOST_LINES} are shown.` : ""}
        </span>
      </div>
      <Wide label="Parallel coordinates">
        <div style={{ minWidth: `${Math.max(20, 5.5 * (parameters.length + 1))}rem` }}>
          <Chart
            name={`${study}-parallel-${objective.metric}`}
            label={`${lines.length} trials as lines through ${parameters.length} parameters and ${objective.metric}.`}
            height={340}
            option={option}
          />
        </div>
      </Wide>
    </>
  );
}

function parallelOption(palette: Palette, parameters: Parameter[], objective: Objective, trials: Trial[], best: ReadonlySet<number>): EChartsOption {
  const { metric } = objective;
  const unit = unitOf(objective);
  const values = trials.map(({ metrics }) => metrics?.[metric] ?? NaN);
  // By rank, so that a few that are far off leave colours for the others.
  const sorted = [...values].sort((a, b) => a - b);
  const rank = (value: number) => sorted.findIndex((one) => one >= value) / Math.max(sorted.length - 1, 1);
  const text = { color: palette.soft, fontSize: 12 };
  const common = { axisLine: { lineStyle: { color: palette.soft } }, axisTick: { lineStyle: { color: palette.line } }, nameTextStyle: { color: palette.text, fontSize: 12 } };
  const drawn = trials.map((trial, index) => {
    const good = objective.goal === "minimize" ? 1 - rank(values[index] ?? NaN) : rank(values[index] ?? NaN);
    const leads = best.has(trial.number);
    return {
      name: `Trial ${trial.number}`,
      value: [...parameters.map((parameter) => written(parameter, trial)), values[index] ?? NaN],
      lineStyle: {
        color: leads ? (palette.series[1] ?? palette.warn) : shade([palette.line, palette.series[0] ?? palette.accent], good),
        width: leads ? 3 : 1,
        opacity: leads ? 1 : 0.25 + 0.55 * good ** 2,
      },
      leads,
      good,
    };
  });
  // The best on top.
  drawn.sort((a, b) => Number(a.leads) - Number(b.leads) || a.good - b.good);
  return {
    ...frame(palette),
    tooltip: { show: false },
    parallel: { left: 36, right: 56, top: 34, bottom: 18, parallelAxisDefault: { areaSelectStyle: { width: 18, color: palette.accent, borderColor: palette.accent, opacity: 0.25 } } },
    parallelAxis: [
      ...parameters.map((parameter, dim) =>
        isNumeric(parameter)
          ? {
              dim,
              name: parameter.name,
              type: isLogarithmic(parameter) ? ("log" as const) : ("value" as const),
              min: parameter.min ?? 0,
              max: parameter.max ?? 1,
              ...common,
              axisLabel: { ...text, formatter: (value: number) => formatValue(value) },
            }
          : { dim, name: parameter.name, type: "category" as const, data: choicesOf(parameter).map((choice) => formatValue(choice)), ...common, axisLabel: text },
      ),
      {
        dim: parameters.length,
        name: metric,
        type: "value" as const,
        scale: true,
        ...common,
        axisLabel: { ...text, formatter: (value: number) => formatMetric(value, unit, 3) },
      },
    ],
    series: [{ type: "parallel", data: drawn, inactiveOpacity: 0.03, activeOpacity: 0.9, smooth: false, progressive: 500 }],
  };
}

function written(parameter: Parameter, { params }: Trial): number | string {
  const value = params[parameter.name];
  if (value === undefined) return "-";
  return isNumeric(parameter) && typeof value === "number" ? value : formatValue(value);
}
