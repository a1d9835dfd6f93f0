import type { EChartsOption } from "echarts";
import { useCallback, useState } from "react";
import { Button } from "@/components/Button";
import { Chart, type Palette } from "@/components/Chart";
import { axis, frame, scaleAxis, whisker } from "@/components/plot";
import type { ObjectiveInsight } from "@/lib/api/client";
import { formatGain } from "@/lib/format";
import styles from "./analysis.module.css";

const FIRST = 12;

/** Which parameters matter: the share of the variance that each explains alone, with its uncertainty. */
export function Importance({ study, insight }: { study: string; insight: ObjectiveInsight }) {
  const [all, showAll] = useState(false);
  const shown = all ? insight.effects : insight.effects.slice(0, FIRST);
  const option = useCallback((palette: Palette) => importanceOption(palette, insight, all), [insight, all]);
  const [first] = insight.effects;
  return (
    <>
      <Chart
        name={`${study}-importance-${insight.metric}`}
        label={`Importance of ${shown.length} parameters for ${insight.metric}${first === undefined ? "" : `; most of all ${first.parameter}, ${formatGain(first.importance)}`}.`}
        height={46 + 26 * shown.length}
        option={option}
      />
      {insight.effects.length > FIRST ? (
        <Button small kind="quiet" onClick={() => showAll(!all)}>
          {all ? "Show fewer" : `Show all ${insight.effects.length}`}
        </Button>
      ) : null}
      <p className={styles.note}>
        Share of the variance over the whole space that a parameter explains alone; whiskers: one standard deviation between the trees of the forest.
        {together(insight)}
      </p>
    </>
  );
}

function together({ surfaces }: ObjectiveInsight): string {
  const most = surfaces.reduce<ObjectiveInsight["surfaces"][number] | null>((found, one) => (found === null || one.importance > found.importance ? one : found), null);
  if (most === null || most.importance < 0.01) return "";
  return ` Of pairs, ${most.first} and ${most.second} together explain the most beyond that: ${formatGain(most.importance)}.`;
}

function importanceOption(palette: Palette, { effects }: ObjectiveInsight, all: boolean): EChartsOption {
  const shown = all ? effects : effects.slice(0, FIRST);
  return {
    ...frame(palette),
    grid: { left: 8, right: 24, top: 8, bottom: 8, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const effect = shown[(item as { dataIndex: number }).dataIndex];
        return effect === undefined ? "" : `${effect.parameter}\n${formatGain(effect.importance)} ± ${formatGain(effect.deviation)}`;
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
    series: [
      {
        type: "bar",
        data: shown.map(({ importance }) => importance),
        itemStyle: { color: palette.series[0] ?? palette.accent, borderRadius: [0, 3, 3, 0] },
        barMaxWidth: 16,
      },
      {
        type: "custom",
        data: shown.map(({ importance, deviation }, index) => [index, Math.max(0, importance - deviation), importance + deviation]),
        encode: { x: [1, 2], y: 0 },
        renderItem: whisker(palette.text, true),
        silent: true,
      },
    ],
  };
}
