import { t } from "@lingui/core/macro";
import type { Parameter, StudySpec, Trial } from "@/lib/api/client";
import { formatDuration, formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import { choicesOf, isLogarithmic, isNumeric } from "@/lib/scale";
import { titled } from "@/lib/space";
import { columnsOf } from "./columns";
import { duration } from "./tableQuery";

/** The columns of a plot of the user's own, which the address of the page holds. */
export interface Chosen {
  x?: string | undefined;
  y?: string | undefined;
  color?: string | undefined;
  size?: string | undefined;
}

/** A column that can be plotted. */
export interface PlotColumn {
  name: string;
  title: string;
  /** The values in their order if it is a choice; null: its values are numbers. */
  choices: readonly string[] | null;
  isLogarithmic: boolean;
  /** The number, or the text of the choice; null: the trial has none. */
  valueOf: (trial: Trial) => number | string | null;
  format: (value: number) => string;
}

/** Return the columns of a study's trials that can be plotted: number, running time, metrics and parameters. */
export function plotColumns(spec: StudySpec, trials: Trial[]): PlotColumn[] {
  const parameters = new Map(spec.space.parameters.map((one) => [one.name, one]));
  const number = { choices: null, isLogarithmic: false };
  const found: PlotColumn[] = [
    { ...number, name: "number", title: t`Trial`, valueOf: (trial) => trial.number, format: (value) => formatNumber(value) },
    // eslint-disable-next-line lingui/no-unlocalized-strings -- a name of a column
    { ...number, name: "duration", title: t`Duration`, valueOf: (trial) => (trial.finished_at === null ? null : duration(trial, new Date())), format: formatDuration },
  ];
  for (const column of columnsOf(spec, trials)) {
    const [kind, ...rest] = column.split(":");
    const name = rest.join(":");
    if (kind === "metric") {
      const unit = unitOf(spec.objectives.find(({ metric }) => metric === name) ?? { metric: name });
      found.push({ ...number, name: column, title: name, valueOf: ({ metrics, state }) => (state === "COMPLETED" ? (metrics?.[name] ?? null) : null), format: (value) => formatMetric(value, unit, 3) });
    } else if (kind === "param") {
      const parameter = parameters.get(name);
      if (parameter !== undefined) found.push(ofParameter(column, parameter));
    }
  }
  return found;
}

function ofParameter(column: string, parameter: Parameter): PlotColumn {
  const { name, unit } = parameter;
  const numeric = isNumeric(parameter);
  return {
    name: column,
    title: titled(name, unit),
    choices: numeric ? null : choicesOf(parameter).map((choice) => formatValue(choice)),
    isLogarithmic: numeric && isLogarithmic(parameter),
    valueOf: ({ params }) => {
      const value = params[name];
      if (value === undefined) return null;
      return numeric ? Number(value) : formatValue(value);
    },
    format: (value) => formatValue(value),
  };
}

/** Return the column of a name; for an unknown one the first of the `usual` columns that there is. */
export function columnNamed(columns: readonly PlotColumn[], name: string | undefined, usual: readonly string[] = []): PlotColumn | undefined {
  return [name, ...usual].map((wanted) => columns.find((one) => one.name === wanted)).find((one) => one !== undefined);
}

// The fractional parts of its multiples spread marks of equal choices evenly.
const GOLDEN = 0.6180339887498949;

/** Return the place of a trial on an axis: its number, or the place of its choice among the choices, spread by its number. */
export function placeOn(column: PlotColumn, trial: Trial): number | null {
  const value = column.valueOf(trial);
  if (value === null || typeof value === "number") return value !== null && column.isLogarithmic && value <= 0 ? null : value;
  const place = column.choices?.indexOf(value) ?? -1;
  return place < 0 ? null : place + 0.5 * (((trial.number * GOLDEN) % 1) - 0.5);
}

/** Return the least and largest number of a column; null if it has fewer than two different ones. */
export function rangeOf(column: PlotColumn, trials: readonly Trial[]): [number, number] | null {
  let [least, most] = [Infinity, -Infinity];
  for (const trial of trials) {
    const value = column.valueOf(trial);
    if (typeof value !== "number") continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least < most ? [least, most] : null;
}
