import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import { SelectField } from "@/components/Field";
import type { Palette } from "@/components/palette";
import { frame, scaleAxis, shade } from "@/components/plot";
import type { StudySpec, Trial } from "@/lib/api/client";
import { uniform } from "@/lib/sample";
import { columnNamed, placeOn, plotColumns, rangeOf, type Chosen, type PlotColumn } from "./ownPlot";
import styles from "./OwnPlot.module.css";

interface Props {
  study: string;
  spec: StudySpec;
  trials: Trial[];
  /** The parameters, the most important first. */
  order: readonly string[];
  chosen: Chosen;
  onChoose: (changes: Chosen) => void;
  onPick: (trial: number) => void;
}

// More marks than this cover each other.
const MOST = 3000;
const SMALLEST = 5;
const LARGEST = 22;

interface Axes {
  x: PlotColumn;
  y: PlotColumn;
  color: PlotColumn | undefined;
  size: PlotColumn | undefined;
}

/** A plot of any two columns of the trials, with a third as colour and a fourth as size. */
export function OwnPlot({ study, spec, trials, order, chosen, onChoose, onPick }: Props) {
  const columns = useMemo(() => plotColumns(spec, trials), [spec, trials]);
  /* eslint-disable lingui/no-unlocalized-strings -- names of columns */
  const x = columnNamed(columns, chosen.x, [`param:${order[0] ?? ""}`, "number"]);
  const y = columnNamed(columns, chosen.y, [`metric:${spec.objectives[0]?.metric ?? ""}`, "number"]);
  /* eslint-enable lingui/no-unlocalized-strings */
  const color = columnNamed(columns, chosen.color);
  const size = columnNamed(columns, chosen.size);
  const shown = useMemo(() => {
    if (x === undefined || y === undefined) return [];
    return uniform(trials.filter((trial) => placeOn(x, trial) !== null && placeOn(y, trial) !== null), MOST);
  }, [trials, x, y]);
  const option = useCallback((palette: Palette): EChartsOption => (x === undefined || y === undefined ? {} : plotOption(palette, shown, { x, y, color, size })), [shown, x, y, color, size]);
  if (x === undefined || y === undefined) return null;
  const numbers = columns.filter(({ choices }) => choices === null);
  const text = t`${y.title} over ${x.title} of ${plural(shown.length, { one: "# trial", other: "# trials" })}.`;
  return (
    <Card title={t`Plot of your own`}>
      <div className={styles.choices}>
        <Choice label={t`Horizontal`} columns={columns} value={x.name} onChange={(name) => onChoose({ x: name })} />
        <Choice label={t`Vertical`} columns={columns} value={y.name} onChange={(name) => onChoose({ y: name })} />
        <Choice label={t`Colour`} columns={columns} value={color?.name} none={t`one colour`} onChange={(name) => onChoose({ color: name })} />
        <Choice label={t`Size`} columns={numbers} value={size?.name} none={t`one size`} onChange={(name) => onChoose({ size: name })} />
      </div>
      <Chart
        name={`${study}-plot`}
        label={text}
        height={380}
        zooms
        option={option}
        onPick={(picked) => {
          if (typeof picked === "object" && picked !== null && "trial" in picked && typeof picked.trial === "number") onPick(picked.trial);
        }}
      />
      {color === undefined ? null : <Colours column={color} trials={shown} />}
      <p className={styles.note}>
        {text} {t`The address of this page keeps the choice of columns, so you can share it or save it as a bookmark.`}
      </p>
    </Card>
  );
}

interface ChoiceProps {
  label: string;
  columns: readonly PlotColumn[];
  value: string | undefined;
  /** The text for no column; without it a column is needed. */
  none?: string;
  onChange: (name: string | undefined) => void;
}

function Choice({ label, columns, value, none, onChange }: ChoiceProps) {
  return (
    <SelectField label={label} value={value ?? ""} onChange={(event) => onChange(event.target.value || undefined)}>
      {none === undefined ? null : <option value="">{none}</option>}
      {columns.map(({ name, title }) => (
        <option key={name} value={name}>
          {title}
        </option>
      ))}
    </SelectField>
  );
}

/** Explain the colours: a ramp for numbers, a mark for each choice. */
function Colours({ column, trials }: { column: PlotColumn; trials: readonly Trial[] }) {
  if (column.choices !== null) {
    return (
      <ul className={styles.colours} aria-label={column.title}>
        {column.choices.map((choice, place) => (
          <li key={choice}>
            <span className={styles.mark} style={{ background: `var(--series-${(place % 6) + 1})` }} /> {choice}
          </li>
        ))}
      </ul>
    );
  }
  const range = rangeOf(column, trials);
  if (range === null) return null;
  return (
    <p className={styles.colours}>
      {column.title} <span>{column.format(range[0])}</span> <span className={styles.ramp} /> <span>{column.format(range[1])}</span>
    </p>
  );
}

function plotOption(palette: Palette, trials: readonly Trial[], { x, y, color, size }: Axes): EChartsOption {
  const paint = painter(palette, trials, color);
  const scale = scaler(trials, size);
  const told = [x, y, color, size].filter((one, place, all) => one !== undefined && all.indexOf(one) === place) as PlotColumn[];
  return {
    ...frame(palette),
    grid: { left: 12, right: 24, top: 32, bottom: 26, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { trial } = (item as unknown as { data: { trial: number } }).data;
        const found = trials.find(({ number }) => number === trial);
        return [t`Trial ${trial}`, ...told.map((column) => `${column.title}: ${found === undefined ? "" : textOf(column, found)}`)].join("\n");
      },
    },
    xAxis: { ...axisOf(palette, x), nameLocation: "middle" as const, nameGap: 28 },
    yAxis: { ...axisOf(palette, y), nameLocation: "end" as const, nameTextStyle: { color: palette.soft, fontSize: 12, align: "left" as const } },
    series: [
      {
        type: "scatter",
        data: trials.map((trial) => ({
          value: [placeOn(x, trial) ?? 0, placeOn(y, trial) ?? 0],
          trial: trial.number,
          symbolSize: scale(trial),
          itemStyle: { color: paint(trial), opacity: trials.length > 500 ? 0.55 : 0.8 },
        })),
      },
    ],
  };
}

function axisOf(palette: Palette, { title, choices, isLogarithmic, format }: PlotColumn) {
  if (choices !== null) {
    return { type: "value" as const, name: title, min: -0.5, max: choices.length - 0.5, interval: 0.5, ...scaleAxis(palette, (value) => choices[value] ?? ""), splitLine: { show: false } };
  }
  return { type: isLogarithmic ? ("log" as const) : ("value" as const), scale: true, name: title, ...scaleAxis(palette, format) };
}

function textOf(column: PlotColumn, trial: Trial): string {
  const value = column.valueOf(trial);
  return typeof value === "number" ? column.format(value) : (value ?? "—");
}

/** Return the colour of a trial. */
function painter(palette: Palette, trials: readonly Trial[], column: PlotColumn | undefined): (trial: Trial) => string {
  if (column === undefined) return () => palette.accent;
  const { choices } = column;
  if (choices !== null) return (trial) => palette.series[choices.indexOf(String(column.valueOf(trial))) % palette.series.length] ?? palette.soft;
  const range = rangeOf(column, trials);
  return (trial) => {
    const value = column.valueOf(trial);
    return typeof value !== "number" || range === null ? palette.soft : shade(palette.scale, shareOf(column, value, range));
  };
}

/** Return the diameter of a trial's mark. Its area grows with the value. */
function scaler(trials: readonly Trial[], column: PlotColumn | undefined): (trial: Trial) => number {
  const range = column === undefined ? null : rangeOf(column, trials);
  if (column === undefined || range === null) return () => (trials.length > 500 ? SMALLEST : 8);
  return (trial) => {
    const value = column.valueOf(trial);
    return typeof value !== "number" ? SMALLEST : Math.sqrt(SMALLEST ** 2 + (LARGEST ** 2 - SMALLEST ** 2) * shareOf(column, value, range));
  };
}

function shareOf({ isLogarithmic }: PlotColumn, value: number, [least, most]: [number, number]): number {
  return isLogarithmic && least > 0 ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least);
}
