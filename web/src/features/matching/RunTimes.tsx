import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis, whisker } from "@/components/plot";
import type { MatchingRecord, ReportedJob } from "@/lib/api/client";
import { formatMetric } from "@/lib/format";
import { changeText, signed } from "./Feedback";
import styles from "./matching.module.css";

/** Plot the run times of jobs with a record's settings against the controls, and the difference with its interval of 95 %. */
export function RunTimesPlot({ record, times }: { record: MatchingRecord; times: RunTimes }) {
  const option = useCallback((palette: Palette) => timesOption(palette, times), [times]);
  const { feedback } = record;
  const difference = useCallback((palette: Palette) => changeOption(palette, feedback), [feedback]);
  const change = feedback === null ? null : changeText(feedback);
  const [applied, control] = [String(times.applied.length), String(times.control.length)];
  return (
    <>
      <Chart
        name={`${record.study}-run-times`}
        label={t`Run times of ${applied} jobs with the settings and ${control} controls. Geometric means: ${meanText(times.applied)} and ${meanText(times.control)}.`}
        height={190}
        option={option}
      />
      {change === null ? (
        <p className={styles.note}>{t`The difference is shown once each side has three completed jobs.`}</p>
      ) : (
        <Chart name={`${record.study}-difference`} label={t`Difference of the run time: ${change}.`} height={96} option={difference} />
      )}
    </>
  );
}

function meanText(times: readonly RunTime[]): string {
  const mean = meanOf(times);
  return mean === null ? "—" : formatMetric(mean, "s", 3);
}

/** Return a small offset across the row, so that equal run times do not hide each other. */
function jitter(place: number): number {
  return ((place * 0.618) % 1) * 0.44 - 0.22;
}

function timesOption(palette: Palette, { applied, control }: RunTimes): EChartsOption {
  const rows = [
    { title: t`With the settings`, times: applied, row: 1, color: palette.series[0] ?? palette.accent },
    { title: t`Control`, times: control, row: 0, color: palette.series[1] ?? palette.warn },
  ];
  return {
    ...frame(palette),
    grid: { left: 8, right: 24, top: 20, bottom: 26, containLabel: true },
    xAxis: { type: "log", name: t`Run time`, nameLocation: "middle", nameGap: 28, ...scaleAxis(palette, (value) => formatMetric(value, "s", 3)), axisLine: { onZero: false, lineStyle: { color: palette.line } }, ...extentOf([...applied, ...control]) },
    yAxis: {
      type: "value",
      min: -0.5,
      max: 1.5,
      interval: 0.5,
      ...axis(palette),
      axisLine: { show: false },
      splitLine: { show: false },
      axisLabel: { color: palette.text, fontSize: 12, formatter: (value: number) => rows.find(({ row }) => row === value)?.title ?? "" },
    },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { data } = item as unknown as { data: [number, number, string] };
        return `${data[2]}\n${formatMetric(data[0], "s")}`;
      },
    },
    series: rows.flatMap(({ title, times, row, color }) => {
      const mean = meanOf(times);
      return [
        {
          name: title,
          type: "scatter" as const,
          symbolSize: 8,
          data: times.map(({ seconds, job, nodes }, place) => [seconds, row + jitter(place), t`Job ${job}, nodes: ${String(nodes)}`]),
          itemStyle: { color, opacity: 0.6 },
        },
        {
          name: title,
          type: "scatter" as const,
          symbol: "diamond",
          symbolSize: 15,
          data: mean === null ? [] : [[mean, row, t`${title}: geometric mean`]],
          itemStyle: { color, borderColor: palette.text, borderWidth: 1 },
        },
      ];
    }),
  };
}

/** Return the limits of the axis: a little beyond all run times. */
function extentOf(times: readonly RunTime[]): { min?: number; max?: number } {
  if (times.length === 0) return {};
  const seconds = times.map((one) => one.seconds);
  return { min: Math.min(...seconds) / 1.15, max: Math.max(...seconds) * 1.15 };
}

function changeOption(palette: Palette, feedback: MatchingRecord["feedback"]): EChartsOption {
  const { change, low, high } = { change: feedback?.change ?? 0, low: feedback?.low ?? 0, high: feedback?.high ?? 0 };
  const reach = 1.15 * Math.max(Math.abs(low), Math.abs(high), 0.01);
  const plain = scaleAxis(palette, signed);
  // The limits are no round numbers.
  const changeAxis = { ...plain, axisLabel: { ...plain.axisLabel, showMinLabel: false, showMaxLabel: false } };
  const color = low > 0 ? palette.bad : high < 0 ? palette.good : palette.text;
  return {
    ...frame(palette),
    grid: { left: 24, right: 24, top: 14, bottom: 26, containLabel: true },
    xAxis: { type: "value", min: -reach, max: reach, name: t`Difference of the run time, with its 95 % interval`, nameLocation: "middle", nameGap: 28, ...changeAxis, splitNumber: 4 },
    yAxis: { type: "value", min: -1, max: 1, show: false },
    tooltip: { ...frame(palette).tooltip, formatter: () => (feedback === null ? "" : (changeText(feedback) ?? "")) },
    series: [
      { type: "custom", data: [[0, low, high]], encode: { x: [1, 2], y: 0 }, renderItem: whisker(color, true), silent: true },
      {
        type: "scatter",
        symbol: "diamond",
        symbolSize: 15,
        data: [[change, 0]],
        itemStyle: { color },
        markLine: { silent: true, symbol: "none", data: [{ xAxis: 0 }], label: { show: false }, lineStyle: { color: palette.soft, type: "dashed" } },
      },
    ],
  };
}

export interface RunTime {
  job: string;
  seconds: number;
  nodes: number;
}

export interface RunTimes {
  applied: RunTime[];
  control: RunTime[];
}

/** Return the run times that the feedback on a record compares: completed jobs that were submitted since it became active. */
export function runTimesOf({ id, active_since }: MatchingRecord, jobs: readonly ReportedJob[]): RunTimes {
  const since = Date.parse(active_since);
  const of = (decision: "APPLIED" | "CONTROL") =>
    jobs
      .filter(({ end, seconds, job, considered, confirmed }) => {
        const counts = confirmed && end === "COMPLETED" && seconds > 0 && Date.parse(job.submitted_at) >= since;
        return counts && considered.some((one) => one.record === id && one.decision === decision);
      })
      .map(({ job_id, submission, seconds, job: { nodes } }) => ({ job: job_id || submission.slice(0, 8), seconds, nodes }));
  return { applied: of("APPLIED"), control: of("CONTROL") };
}

/** Return the geometric mean of run times; null without any. */
export function meanOf(times: readonly RunTime[]): number | null {
  if (times.length === 0) return null;
  return Math.exp(times.reduce((sum, { seconds }) => sum + Math.log(seconds), 0) / times.length);
}
