import { plural, t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback, useState } from "react";
import { Button } from "@/components/Button";
import { Chart, Legend } from "@/components/Chart";
import { Wide } from "@/components/Table";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis, whisker } from "@/components/plot";
import type { Effect, ObjectiveInsight } from "@/lib/api/client";
import { formatNumber, formatPercent } from "@/lib/format";
import type { Part } from "./api";
import styles from "./analysis.module.css";

const FIRST = 12;
/** Pixels: the height of a bar if each parameter has several, and the distance from one to the next. */
const BAR = 8;
const STEP = 10;

/** Plot the share of the variance that each parameter explains, by the forest and by a Gaussian process, with its uncertainty. */
export function Importance({ study, insight, process }: { study: string; insight: ObjectiveInsight; process?: Part }) {
  const [all, showAll] = useState(false);
  const shown = all ? insight.effects : insight.effects.slice(0, FIRST);
  const option = useCallback((palette: Palette) => importanceOption(palette, insight, all), [insight, all]);
  const lanes = lanesOf(insight.effects);
  return (
    <>
      {lanes.length === 1 ? null : (
        <Legend>
          {lanes.map(({ name }, lane) => (
            <li key={name}>
              <span className={styles.colour} style={{ background: `var(--series-${lane + 1})` }} aria-hidden="true" />
              {name}
            </li>
          ))}
        </Legend>
      )}
      <Chart
        name={`${study}-importance-${insight.metric}`}
        label={described(insight, shown.length)}
        height={lanes.length === 1 ? 46 + 26 * shown.length : 74 + (STEP * lanes.length + 12) * shown.length}
        option={option}
      />
      {insight.effects.length > FIRST ? (
        <Button small kind="quiet" onClick={() => showAll(!all)}>
          {all ? t`Show fewer` : t`Show all ${formatNumber(insight.effects.length)}`}
        </Button>
      ) : null}
      <p className={styles.note}>
        {t`The main effect is the share of the variance over the whole space that a parameter explains alone; whiskers: one standard deviation between the trees of the forest.`}{" "}
        {together(insight)}
      </p>
      {process === undefined || process === "there" ? null : (
        <p className={styles.note} role="status">
          {process === "awaited" ? t`The Sobol’ indices of a Gaussian process are being computed.` : t`The Sobol’ indices of a Gaussian process could not be computed.`}
        </p>
      )}
      {lanes.length === 1 ? null : (
        <>
          <p className={styles.note}>
            {t`The Sobol’ indices of a Gaussian process are shown next to it: the main effect of a parameter, and its total effect with all interactions; whiskers: 95 % of the functions drawn from the posterior. If the two models disagree, more measurements are needed.`}
          </p>
          <Numbers lanes={lanes} shown={shown} />
        </>
      )}
    </>
  );
}

function described({ metric, effects }: ObjectiveInsight, shown: number): string {
  const [first] = effects;
  const text = plural(shown, { one: `Importance of # parameter for ${metric}`, other: `Importance of # parameters for ${metric}` });
  return first === undefined ? `${text}.` : t`${text}; the most important is ${first.parameter} with ${formatPercent(first.importance)}.`;
}

function Numbers({ lanes, shown }: { lanes: Lane[]; shown: ObjectiveInsight["effects"] }) {
  return (
    <details className={styles.numbers}>
      <summary>{t`Show values`}</summary>
      <Wide label={t`Importance in numbers`}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{t`Parameter`}</th>
              {lanes.map(({ name }) => (
                <th key={name} scope="col" className={styles.number}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ parameter }, place) => (
              <tr key={parameter}>
                <th scope="row">{parameter}</th>
                {lanes.map(({ name, shares }) => (
                  <td key={name} className={styles.number}>
                    {written(shares[place] ?? null)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </details>
  );
}

function written(share: Lane["shares"][number]): string {
  return share === null ? "—" : t`${formatPercent(share.value)} (${formatPercent(share.low)} to ${formatPercent(share.high)})`;
}

function together({ surfaces }: ObjectiveInsight): string {
  const most = surfaces.reduce<ObjectiveInsight["surfaces"][number] | null>((found, one) => (found === null || one.importance > found.importance ? one : found), null);
  if (most === null || most.importance < 0.01) return "";
  return t`The strongest interaction is between ${most.first} and ${most.second}: it explains another ${formatPercent(most.importance)}.`;
}

function importanceOption(palette: Palette, insight: ObjectiveInsight, all: boolean): EChartsOption {
  const shown = all ? insight.effects : insight.effects.slice(0, FIRST);
  const lanes = lanesOf(shown);
  const several = lanes.length > 1;
  const colours = [palette.series[0] ?? palette.accent, palette.series[1] ?? palette.warn, palette.series[2] ?? palette.soft];
  return {
    ...frame(palette),
    grid: { left: 8, right: 24, top: 24, bottom: 8, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const { dataIndex, seriesName } = item as { dataIndex: number; seriesName: string };
        const share = lanes.find(({ name }) => name === seriesName)?.shares[dataIndex];
        return share === undefined || share === null ? "" : `${shown[dataIndex]?.parameter ?? ""}\n${seriesName}: ${written(share)}`;
      },
    },
    xAxis: { type: "value", min: 0, ...scaleAxis(palette, (value) => `${Math.round(value * 100)} %`) },
    yAxis: {
      type: "category",
      inverse: true,
      data: shown.map(({ parameter }) => parameter),
      ...axis(palette),
      axisLabel: { color: palette.text, fontSize: 12, width: 130, overflow: "truncate" },
    },
    series: lanes.flatMap(({ name, shares }, lane) => [
      {
        name,
        type: "bar" as const,
        data: shares.map((share) => share?.value ?? null),
        itemStyle: { color: colours[lane] ?? palette.accent, borderRadius: [0, 3, 3, 0] },
        ...(several ? { barWidth: BAR, barGap: `${100 * (STEP / BAR - 1)}%` } : { barMaxWidth: 16 }),
      },
      {
        type: "custom" as const,
        data: shares.flatMap((share, index) => (share === null ? [] : [[index, share.low, share.high]])),
        encode: { x: [1, 2], y: 0 },
        renderItem: whisker(palette.text, true, several ? STEP * (lane - (lanes.length - 1) / 2) : 0),
        silent: true,
      },
    ]),
  };
}

/** One measure of the importance of each parameter: a share of the variance with its interval, or null if unknown. */
export interface Lane {
  name: string;
  shares: ({ value: number; low: number; high: number } | null)[];
}

/** Return the forest's importance and, if there is a Gaussian process, its Sobol’ indices. */
export function lanesOf(effects: readonly Effect[]): Lane[] {
  const forest: Lane = {
    name: t`Forest: main effect`,
    shares: effects.map(({ importance, deviation }) => ({ value: importance, low: Math.max(0, importance - deviation), high: Math.min(1, importance + deviation) })),
  };
  if (effects.every(({ sensitivity }) => !sensitivity)) return [forest];
  return [
    forest,
    { name: t`Gaussian process: main effect`, shares: effects.map(({ sensitivity }) => sensitivity?.alone ?? null) },
    { name: t`Gaussian process: total effect`, shares: effects.map(({ sensitivity }) => sensitivity?.together ?? null) },
  ];
}
