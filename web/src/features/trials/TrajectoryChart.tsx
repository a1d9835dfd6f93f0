import { plural, t } from "@lingui/core/macro";
import { useCallback, useContext, useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { Card } from "@/components/Card";
import { Chart, Legend, LegendItem, OnPaper } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import type { Zoomed } from "@/components/plot";
import { Segments } from "@/components/Select";
import type { Configuration, ObjectiveProgress, Study, StudySpec, Trial } from "@/lib/api/client";
import { formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import { aggregate, type Aggregate } from "./aggregate";
import { outside, robustRange } from "./robust";
import { trajectory, type Across, type Trajectory } from "./trajectory";
import { trajectoryOption } from "./trajectoryOption";
import { unitsOf, type Units } from "@/lib/space";
import styles from "./TrajectoryChart.module.css";

/** The choices of a trajectory, which the address of the page holds. Missing: the first objective, single trials, by number, linear. */
export interface TrajectoryView {
  metric?: string | undefined;
  show?: "configurations" | undefined;
  across?: "time" | undefined;
  scale?: "log" | undefined;
  /** "all": with every outlier; by default the vertical axis shows where the search is. */
  range?: "all" | undefined;
}

interface Props {
  study: Study;
  trials: Trial[];
  objectives: ObjectiveProgress[] | undefined;
  onPick: (trial: number) => void;
  /** Numbers of the trials that measured the recommended configuration. */
  best?: ReadonlySet<number>;
  /** Numbers of the trials with a penalty in place of a measurement. */
  penalties?: readonly number[] | undefined;
  /** The default configuration. The tooltip names the parameters that differ from it first. */
  standardParams?: Configuration | undefined;
  /** Numbers of the trials that are drawn; null: all. */
  drawn?: ReadonlySet<number> | null;
  view?: TrajectoryView;
  /** Called when the user makes another choice. Without it, there are no choices, as on paper. */
  onView?: ((view: TrajectoryView) => void) | undefined;
  /** Called when the user zooms to another interval of trials. Must be the same function while nothing changes. */
  onRange?: ((first: number, last: number) => void) | undefined;
  /** Called with conditions of the table of trials when the user asks for the trials of the shown part. */
  onShow?: ((where: string[]) => void) | undefined;
  title?: string;
}

const NONE: ReadonlySet<number> = new Set();

/** Plot each trial's value, the best so far and the trials without a value; or the values of configurations over their replicates. */
export function TrajectoryChart({ study, trials, objectives, onPick, best = NONE, penalties, standardParams, drawn = null, view = {}, onView, onRange, onShow, title = t`Trajectory` }: Props) {
  const { spec } = study;
  // eslint-disable-next-line lingui/no-unlocalized-strings -- choices
  const { show = "trials", across = "number", scale = "value" } = view;
  const objective = spec.objectives.find(({ metric }) => metric === view.metric) ?? spec.objectives[0];
  if (objective === undefined) return null;
  return (
    <Card
      title={title}
      actions={
        onView === undefined ? undefined : (
          <>
            {spec.objectives.length > 1 ? (
              <Segments
                label={t`Objective`}
                value={objective.metric}
                onChange={(metric) => onView({ ...view, metric: metric === spec.objectives[0]?.metric ? undefined : metric })}
                options={spec.objectives.map(({ metric }) => ({ value: metric, text: metric }))}
              />
            ) : null}
            <Segments
              label={t`Show`}
              value={show}
              onChange={(chosen) => onView({ ...view, show: chosen === "trials" ? undefined : chosen })}
              options={[
                { value: "trials", text: t`Trials` },
                { value: "configurations", text: t`Configurations` },
              ]}
            />
            <Segments
              label={t`Horizontal axis`}
              value={across}
              onChange={(chosen) => onView({ ...view, across: chosen === "number" ? undefined : chosen })}
              options={[
                { value: "number", text: t`Number` },
                { value: "time", text: t`Time` },
              ]}
            />
            <Segments
              label={t`Scale`}
              value={scale}
              onChange={(chosen) => onView({ ...view, scale: chosen === "value" ? undefined : chosen })}
              options={[
                { value: "value", text: t`Linear` },
                { value: "log", text: t`Log` },
              ]}
            />
          </>
        )
      }
    >
      <Plot
        key={`${objective.metric} ${show} ${across}`}
        name={`${study.name}-${objective.metric}`}
        aggregated={show === "configurations"}
        across={across}
        trials={trials}
        drawn={drawn}
        best={best}
        penalties={penalties}
        objective={objective}
        space={study}
        log={scale === "log"}
        standard={objectives?.find((progress) => progress.metric === objective.metric)?.default ?? null}
        standardParams={standardParams}
        onPick={onPick}
        onRange={across === "number" ? onRange : undefined}
        all={view.range === "all" || onView === undefined}
        onAll={onView === undefined ? undefined : (all) => onView({ ...view, range: all ? "all" : undefined })}
        onShow={across === "number" && show === "trials" ? onShow : undefined}
      />
    </Card>
  );
}

interface PlotProps {
  name: string;
  aggregated: boolean;
  across: Across;
  trials: Trial[];
  drawn: ReadonlySet<number> | null;
  best: ReadonlySet<number>;
  penalties: readonly number[] | undefined;
  objective: StudySpec["objectives"][number];
  space: Study;
  log: boolean;
  standard: number | null;
  standardParams: Configuration | undefined;
  onPick: (trial: number) => void;
  onRange: ((first: number, last: number) => void) | undefined;
  /** Whether all values are shown, also outliers. */
  all: boolean;
  onAll: ((all: boolean) => void) | undefined;
  onShow: ((where: string[]) => void) | undefined;
}

function Plot({ name, aggregated, across, trials, drawn, best, penalties, objective, space, log, standard, standardParams, onPick, onRange, all, onAll, onShow }: PlotProps) {
  const { spec, removed, imputed } = space;
  const groups = useMemo(() => (aggregated ? aggregate(trials, [objective]) : null), [aggregated, trials, objective]);
  const data = useMemo(
    () => trajectory(groups === null ? trials : asTrials(groups, trials), objective, { across, best, penalties: new Set(penalties), drawn, space: { spec, removed, imputed } }),
    [groups, trials, objective, across, best, penalties, drawn, spec, removed, imputed],
  );
  const byNumber = useMemo(() => new Map(trials.map((trial) => [trial.number, trial])), [trials]);
  const unit = unitOf(objective);
  const [hidden, hide] = useState<ReadonlySet<Mark>>(new Set());
  const [zoomed, setZoomed] = useState<Zoomed>(WHOLE);
  const robust = useMemo(() => (log ? null : robustRange(data, objective.goal, standard)), [log, data, objective, standard]);
  const range = all ? null : robust;
  const visible = useMemo(() => withoutMarks(data, hidden), [data, hidden]);
  const positive = valuedOf(data).every(([, value]) => value > 0) && (standard ?? 1) > 0;
  const length = trials.at(-1)?.number ?? 0;
  const units = useMemo(() => unitsOf(spec.space.parameters), [spec]);
  const option = useCallback(
    (palette: Palette) =>
      trajectoryOption({
        data: visible,
        palette,
        range,
        metric: objective.metric,
        standard,
        length,
        across,
        logarithmic: log && positive,
        unit,
        whiskers: groups === null ? [] : whiskers(groups, visible, objective.metric),
        about: (number) => aboutTrial(byNumber.get(number), standardParams, units),
      }),
    [visible, range, standard, length, across, log, positive, unit, groups, objective, byNumber, standardParams, units],
  );
  const pick = useCallback(
    (item: unknown) => {
      if (Array.isArray(item) && typeof item[2] === "number") onPick(item[2]);
    },
    [onPick],
  );
  if (valuedOf(data).length + data.penalised.length + data.infeasible.length + data.failed.length === 0) {
    return <p className={styles.none}>{t`The plot appears when the first trial has ended.`}</p>;
  }
  return (
    <>
      {log && !positive ? <p className={styles.note}>{t`A log scale cannot show values of zero or below. The scale is linear.`}</p> : null}
      {drawn === null ? null : <SampleNote drawn={valuedOf(data).length + data.penalised.length + data.infeasible.length + data.failed.length} study={space} zooms={onRange !== undefined} />}
      <Marks data={data} aggregated={aggregated} counted={drawn === null} hidden={hidden} onToggle={(mark) => hide(toggled(hidden, mark))} />
      <Chart name={name} label={describe(data, objective.metric, unit, standard, aggregated)} height={380} option={option} zooms onPick={pick} onZoom={setZoomed} onRange={onRange} />
      {robust === null || onAll === undefined ? null : (
        <p className={styles.note}>
          {all ? t`The vertical axis shows every value.` : plural(outside(data, robust), { one: "# outlier is outside of the shown range.", other: "# outliers are outside of the shown range." })}{" "}
          <Button small onClick={() => onAll(!all)}>
            {all ? t`Show where the search is` : t`Show all values`}
          </Button>
        </p>
      )}
      {onShow === undefined || (zoomed.x === null && zoomed.y === null) ? null : <InView data={visible} zoomed={zoomed} metric={objective.metric} onShow={onShow} />}
    </>
  );
}

const WHOLE: Zoomed = { x: null, y: null };

/** Say how many trials the shown part of the plot has, with a button that shows them in the table. */
function InView({ data, zoomed: { x, y }, metric, onShow }: { data: Trajectory; zoomed: Zoomed; metric: string; onShow: (where: string[]) => void }) {
  const count = valuedOf(data).filter(([place, value]) => (x === null || (place >= x[0] && place <= x[1])) && (y === null || (value >= y[0] && value <= y[1]))).length;
  return (
    <p className={styles.note} role="status">
      {plural(count, { one: "# trial is in this part of the plot.", other: "# trials are in this part of the plot." })}{" "}
      <Button small onClick={() => onShow(conditionsOf({ x, y }, metric))}>
        {t`Show in the table`}
      </Button>
    </p>
  );
}

/** Return the conditions of the table of trials that select a part of the plot. */
function conditionsOf({ x, y }: Zoomed, metric: string): string[] {
  const rounded = (value: number) => String(Number(value.toPrecision(6)));
  /* eslint-disable lingui/no-unlocalized-strings -- conditions */
  return [
    ...(x === null ? [] : [`number >= ${Math.ceil(x[0])}`, `number <= ${Math.floor(x[1])}`]),
    ...(y === null ? [] : [`metric:${metric} >= ${rounded(y[0])}`, `metric:${metric} <= ${rounded(y[1])}`]),
  ];
  /* eslint-enable lingui/no-unlocalized-strings */
}

/** The kinds of marks that the legend can hide. */
type Mark = Exclude<keyof Trajectory, "checks">;

/** Return the data without the hidden marks. */
function withoutMarks(data: Trajectory, hidden: ReadonlySet<Mark>): Trajectory {
  return { ...data, ...Object.fromEntries([...hidden].map((mark) => [mark, []])) };
}

function toggled(hidden: ReadonlySet<Mark>, mark: Mark): ReadonlySet<Mark> {
  const next = new Set(hidden);
  if (!next.delete(mark)) next.add(mark);
  return next;
}

function SampleNote({ drawn, study, zooms }: { drawn: number; study: Study; zooms: boolean }) {
  return (
    <p className={styles.note}>
      {t`The plot shows a uniform sample: ${formatNumber(drawn)} of ${plural(study.finished_count, { one: "# finished trial", other: "# finished trials" })}, chosen without regard to their values. The line considers every trial that was the best so far.`}{" "}
      {zooms ? t`Zoom in to see all trials of an interval: use the slider, or Ctrl and the mouse wheel. Drag to move the interval.` : ""}
    </p>
  );
}

function valuedOf({ completed, doubtful, breaking, recommended, pruned }: Trajectory) {
  return [...completed, ...doubtful, ...breaking, ...recommended, ...pruned];
}

// The tooltip of a trial has at most so many lines of parameters.
const MOST_LINES = 12;

/** Return the parameters of a trial, a line for each: first those that differ from the default. */
function aboutTrial(trial: Trial | undefined, standard: Configuration | undefined, units: Units): string {
  if (trial === undefined) return "";
  const names = Object.keys(trial.params);
  const differs = (name: string) => standard !== undefined && trial.params[name] !== standard[name];
  const lines = [...names.filter(differs), ...names.filter((name) => !differs(name))].map(
    (name) => `${name} = ${formatValue(trial.params[name], units[name])}${differs(name) ? ` (${t`default ${formatValue(standard?.[name])}`})` : ""}`,
  );
  const more = lines.length - MOST_LINES;
  return [
    trial.breaks === null ? "" : t`Breaks a constraint: ${trial.breaks.join("; ")}`,
    trial.doubt === "" ? "" : t`Doubtful timing: ${trial.doubt}`,
    ...lines.slice(0, MOST_LINES),
    more > 0 ? t`and ${formatNumber(more)} more` : "",
  ]
    .filter((text) => text !== "")
    .join("\n");
}

/** Return each configuration as a trial with the number of its first trial. */
function asTrials(groups: Aggregate[], trials: Trial[]): Trial[] {
  const byNumber = new Map(trials.map((trial) => [trial.number, trial]));
  return groups.flatMap(({ number, median, breaks }) => {
    const trial = byNumber.get(number);
    return trial === undefined ? [] : [{ ...trial, metrics: median, breaks, doubt: "", origin: "suggested" }];
  });
}

/** Return place, lowest and highest value of the drawn configurations that were measured more than once. */
function whiskers(groups: Aggregate[], data: Trajectory, metric: string): [number, number, number][] {
  const places = new Map(valuedOf(data).map(([place, , number]) => [number, place]));
  return groups.flatMap(({ number, count, low, high }) => {
    const place = places.get(number);
    return count > 1 && place !== undefined ? [[place, low[metric] ?? NaN, high[metric] ?? NaN]] : [];
  });
}

interface MarksProps {
  data: Trajectory;
  aggregated: boolean;
  counted: boolean;
  hidden: ReadonlySet<Mark>;
  onToggle: (mark: Mark) => void;
}

function Marks({ data, aggregated, counted, hidden, onToggle }: MarksProps) {
  const onPaper = useContext(OnPaper);
  const count = (points: readonly unknown[]) => (counted ? ` (${formatNumber(points.length)})` : "");
  const marks: [mark: Mark, look: string | undefined, text: string][] = [
    ["completed", styles.completed, aggregated ? t`median, with the range from lowest to highest value` : `${t`completed`}${count(data.completed)}`],
    ["recommended", styles.recommended, `${t`recommended configuration`}${count(data.recommended)}`],
    ["doubtful", styles.doubtful, `${t`doubtful timing`}${count(data.doubtful)}`],
    ["breaking", styles.breaking, `${t`breaks a constraint`}${count(data.breaking)}`],
    ["best", styles.best, aggregated ? t`best median so far` : t`best single run so far`],
    ["pruned", styles.pruned, `${t`pruned, last value`}${count(data.pruned)}`],
    ["penalised", styles.penalised, `${t`penalty`}${count(data.penalised)}`],
    ["infeasible", styles.infeasible, `${t`infeasible`}${count(data.infeasible)}`],
    ["failed", styles.failed, `${t`failed`}${count(data.failed)}`],
  ];
  return (
    <Legend>
      {marks.map(([mark, look, text]) =>
        data[mark].length === 0 ? null : onPaper ? (
          <li key={mark}>
            <span className={look} aria-hidden="true" />
            {text}
          </li>
        ) : (
          <LegendItem key={mark} look={look} text={text} hidden={hidden.has(mark)} onToggle={() => onToggle(mark)} />
        ),
      )}
      {data.checks.length === 0 ? null : (
        <li>
          <span className={styles.check} aria-hidden="true" />
          {t`final check`}
        </li>
      )}
    </Legend>
  );
}

function describe(data: Trajectory, metric: string, unit: string, standard: number | null, aggregated: boolean): string {
  const best = data.best.at(-1);
  const count = data.completed.length + data.doubtful.length + data.breaking.length + data.recommended.length;
  const parts = [
    aggregated
      ? t`${metric} of ${plural(count, { one: "# configuration", other: "# configurations" })}`
      : t`${metric} of ${plural(count, { one: "# completed trial", other: "# completed trials" })}`,
  ];
  if (best !== undefined) {
    const value = formatMetric(best[1], unit);
    parts.push(aggregated ? t`the best median is ${value}, of the configuration of trial ${best[2]}` : t`the best single run is ${value}, trial ${best[2]}`);
  }
  if (standard !== null) parts.push(t`the default is ${formatMetric(standard, unit)}`);
  if (data.breaking.length > 0) parts.push(t`${formatNumber(data.breaking.length)} break a constraint`);
  if (data.penalised.length > 0) parts.push(plural(data.penalised.length, { one: "# penalty", other: "# penalties" }));
  if (data.infeasible.length > 0) parts.push(t`${formatNumber(data.infeasible.length)} infeasible`);
  if (data.failed.length > 0) parts.push(t`${formatNumber(data.failed.length)} failed`);
  return `${parts.join("; ")}.`;
}
