import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import type { EChartsOption } from "echarts";
import { useCallback, useMemo } from "react";
import { stateText } from "@/components/Badge";
import { Card } from "@/components/Card";
import { Chart, Legend } from "@/components/Chart";
import { Empty } from "@/components/Message";
import type { Palette } from "@/components/palette";
import { axis, frame, zoom } from "@/components/plot";
import type { Study, Trial, TrialState } from "@/lib/api/client";
import { useNow, useThrottled } from "@/lib/clock";
import { formatDuration, formatTime } from "@/lib/format";
import { rowsQuery, type RowsWanted } from "./api";
import { ALL, measuredBy } from "./tableQuery";
import styles from "./TrajectoryChart.module.css";

const STATES: readonly TrialState[] = ["ACTIVE", "COMPLETED", "PRUNED", "INFEASIBLE", "FAILED"];

/** The most trials that are shown; the zoom separates bars that are less than a pixel wide. */
const MOST = 5000;
/** The most trials that are fetched for a study of which a sample is known. */
const FETCHED = 600;
const MOST_LINES = 40;

const LATEST: RowsWanted = { order: { column: "number", descending: true }, filter: ALL, offset: 0, size: FETCHED };

/** Plot when trials ran: a line for each agent or client, a bar for each trial. */
export function Timeline({ study, trials: known, sampled, onPick }: { study: Study; trials: Trial[]; sampled: boolean; onPick: (trial: number) => void }) {
  const now = useNow(5000);
  // A sample has gaps, so the latest trials are fetched.
  const latest = useQuery({ ...rowsQuery(study.name, LATEST, useThrottled(study.revision, 2000)), enabled: sampled });
  const rows = latest.data?.trials;
  const trials = useMemo(() => (sampled ? (rows ?? []).toReversed() : known), [sampled, rows, known]);
  const { shown, lines, left: more } = useMemo(() => laidOut(trials), [trials]);
  const left = sampled ? study.trial_count - study.requested_count - shown.length : more;
  const option = useCallback((palette: Palette) => timelineOption(palette, shown, lines, now), [shown, lines, now]);
  const pick = useCallback((item: unknown) => onPick((item as { value: number[] }).value[3] ?? 0), [onPick]);
  return (
    <Card title={t`Timeline`}>
      {shown.length === 0 ? (
        <Empty title={t`No trial has started yet`}>
          <p>{t`Each trial that an agent or a client starts appears here as a bar.`}</p>
        </Empty>
      ) : (
        <>
          <Legend>
            {STATES.filter((state) => shown.some((trial) => trial.state === state)).map((state) => (
              <li key={state}>
                <span className={`${styles.bar} ${styles[state]}`} aria-hidden="true" />
                {stateText(state)}
              </li>
            ))}
          </Legend>
          <Chart
            name={`${study.name}-timeline`}
            label={t`When ${plural(shown.length, { one: "# trial", other: "# trials" })} ran, on ${plural(lines.length, { one: "# agent or client", other: "# agents or clients" })}.`}
            height={112 + 34 * lines.length}
            option={option}
            onPick={pick}
          />
          {left === 0 ? null : (
            <p className={styles.note}>{plural(left, { one: "# earlier trial is not shown.", other: "# earlier trials are not shown." })}</p>
          )}
        </>
      )}
    </Card>
  );
}

interface Drawing {
  coord: (point: [number, number]) => [number, number];
  size: (size: [number, number]) => [number, number];
  value: (dimension: number) => number;
  style: () => object;
}

function timelineOption(palette: Palette, trials: Trial[], lines: string[], now: Date): EChartsOption {
  const colors: Partial<Record<TrialState, string>> = {
    ACTIVE: palette.accent,
    COMPLETED: palette.soft,
    PRUNED: palette.series[3] ?? palette.info,
    INFEASIBLE: palette.warn,
    FAILED: palette.bad,
  };
  const data = trials.map((trial) => ({
    value: [
      Date.parse(trial.started_at ?? ""),
      trial.finished_at === null ? now.getTime() : Date.parse(trial.finished_at),
      lines.indexOf(measurer(trial)),
      trial.number,
    ],
    itemStyle: { color: colors[trial.state] ?? palette.soft },
    name: stateText(trial.state),
  }));
  return {
    ...frame(palette),
    // The buttons of the chart stand above the bars.
    grid: { left: 8, right: 16, top: 30, bottom: 56, containLabel: true },
    dataZoom: zoom(palette),
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { value, name } = item as unknown as { value: number[]; name: string };
        const [from = 0, to = 0, line = 0, number = 0] = value;
        return [t`Trial ${number}: ${name}`, lines[line] ?? "", formatTime(new Date(from)), formatDuration((to - from) / 1000)].join("\n");
      },
    },
    xAxis: { type: "time", ...axis(palette) },
    yAxis: { type: "category", data: lines, inverse: true, ...axis(palette), axisLabel: { color: palette.soft, fontSize: 12, width: 120, overflow: "truncate" } },
    series: [
      {
        type: "custom",
        encode: { x: [0, 1], y: 2 },
        data,
        renderItem: (_, raw) => {
          const api = raw as unknown as Drawing;
          const [x, y] = api.coord([api.value(0), api.value(2)]);
          const [end] = api.coord([api.value(1), api.value(2)]);
          const height = Math.min(api.size([0, 1])[1] * 0.6, 22);
          return {
            type: "rect",
            shape: { x, y: y - height / 2, width: Math.max(end - x - 0.5, 1.5), height },
            style: api.style(),
          };
        },
      },
    ],
  };
}


/** The content of a timeline: the latest trials, a line for each agent or client, and the number of omitted trials. */
export interface Layout {
  shown: Trial[];
  lines: string[];
  left: number;
}

function measurer(trial: Trial): string {
  return measuredBy(trial) || t`a client`;
}

/** Return the latest trials that fit on a timeline. `trials` is sorted by number. */
export function laidOut(trials: readonly Trial[]): Layout {
  const begun = trials.filter(({ started_at, origin }) => started_at !== null && origin !== "added");
  const latest = begun.slice(-MOST);
  // The agents and clients that measured last, if there are too many for a line each.
  const who = new Set<string>();
  for (const trial of latest.toReversed()) if (who.size < MOST_LINES) who.add(measurer(trial));
  const shown = latest.filter((trial) => who.has(measurer(trial)));
  return { shown, lines: [...who].sort(), left: begun.length - shown.length };
}
