import { t } from "@lingui/core/macro";
import type { EChartsOption } from "echarts";
import { useCallback } from "react";
import { Chart } from "@/components/Chart";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis } from "@/components/plot";
import { Wide } from "@/components/Table";
import type { RecordMatch } from "@/lib/api/client";
import { formatFixed } from "@/lib/format";
import { fieldText, stepsOf } from "./score";
import styles from "./matching.module.css";

/** Plot how the parts of a score add up, with the threshold as a line, and show them in numbers. */
export function ScoreChart({ match }: { match: RecordMatch }) {
  const option = useCallback((palette: Palette) => scoreOption(palette, match), [match]);
  const steps = stepsOf(match.parts);
  const unweighted = match.parts.filter(({ weight }) => weight === 0).map(({ field }) => fieldText(field));
  return (
    <>
      <Chart
        name={`${match.record.study}-score`}
        label={t`Parts of the score ${formatFixed(match.score, 3)}; the threshold is ${String(match.threshold)}.`}
        height={74 + 25 * (steps.length + 1)}
        option={option}
      />
      <details>
        <summary>{t`Show values`}</summary>
        <Wide label={t`Parts of the score`}>
          <table className={styles.table}>
            <thead>
              <tr>
                <th scope="col">{t`Feature`}</th>
                <th scope="col" className={styles.number}>{t`Similarity`}</th>
                <th scope="col" className={styles.number}>{t`Weight`}</th>
                <th scope="col" className={styles.number}>{t`Contribution`}</th>
              </tr>
            </thead>
            <tbody>
              {steps.map(({ field, similarity, weight, contribution }) => (
                <tr key={field}>
                  <th scope="row">{fieldText(field)}</th>
                  <td className={styles.number}>{formatFixed(similarity, 3)}</td>
                  <td className={styles.number}>{formatFixed(weight, 3)}</td>
                  <td className={styles.number}>{formatFixed(contribution, 3)}</td>
                </tr>
              ))}
              <tr className={styles.last}>
                <th scope="row">{t`Score`}</th>
                <td />
                <td />
                <td className={styles.number}>{formatFixed(match.score, 3)}</td>
              </tr>
            </tbody>
          </table>
        </Wide>
        {unweighted.length === 0 ? null : <p className={styles.note}>{t`Without a weight: ${unweighted.join(", ")}.`}</p>}
      </details>
    </>
  );
}

function scoreOption(palette: Palette, { parts, score, threshold, accepted }: RecordMatch): EChartsOption {
  const steps = stepsOf(parts);
  const rows = [...steps, { field: t`Score`, start: 0, contribution: score, weight: 1, similarity: score }];
  const total = accepted ? palette.good : palette.warn;
  const color = palette.series[0] ?? palette.accent;
  return {
    ...frame(palette),
    grid: { left: 8, right: 46, top: 26, bottom: 8, containLabel: true },
    tooltip: {
      ...frame(palette).tooltip,
      formatter: (item) => {
        const row = rows[(item as { dataIndex: number }).dataIndex];
        if (row === undefined) return "";
        if (row === rows.at(-1)) return t`Score ${formatFixed(score, 3)}, threshold ${String(threshold)}`;
        return t`${fieldText(row.field)}\nsimilarity ${formatFixed(row.similarity, 3)} × weight ${formatFixed(row.weight, 3)} = ${formatFixed(row.contribution, 3)}`;
      },
    },
    xAxis: { type: "value", min: 0, max: 1, ...scaleAxis(palette, (value) => formatFixed(value, 1)) },
    yAxis: {
      type: "category",
      inverse: true,
      data: rows.map(({ field }) => fieldText(field)),
      ...axis(palette),
      axisLabel: { color: palette.text, fontSize: 12, width: 128, overflow: "truncate", interval: 0 },
    },
    series: [
      { type: "bar", stack: "score", silent: true, data: rows.map(({ start }) => start), itemStyle: { color: "transparent" }, barMaxWidth: 16 },
      {
        type: "bar",
        stack: "score",
        data: rows.map(({ contribution }, place) => ({ value: contribution, itemStyle: { color: place === steps.length ? total : color } })),
        barMaxWidth: 16,
        markLine: {
          silent: true,
          symbol: "none",
          data: [{ xAxis: threshold }],
          lineStyle: { color: palette.text, type: "dashed", width: 1.5 },
          label: { formatter: t`threshold ${String(threshold)}`, color: palette.text, fontSize: 12, position: "start" },
        },
      },
      {
        // What a full similarity would have added.
        type: "bar",
        stack: "score",
        data: rows.map(({ weight, contribution }, place) => (place === steps.length ? 0 : weight - contribution)),
        itemStyle: { color: palette.line },
        label: {
          show: true,
          position: "right",
          color: palette.text,
          fontSize: 12,
          formatter: ({ dataIndex }: { dataIndex: number }) => formatFixed(rows[dataIndex]?.contribution ?? 0, 3),
        },
      },
    ],
  };
}
