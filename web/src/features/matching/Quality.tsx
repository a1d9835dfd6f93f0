import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import type { EChartsOption } from "echarts";
import { useCallback, type ReactNode } from "react";
import { Card } from "@/components/Card";
import { Chart } from "@/components/Chart";
import { Code, Empty, Loading, Problem } from "@/components/Message";
import type { Palette } from "@/components/palette";
import { axis, frame, scaleAxis } from "@/components/plot";
import { Wide } from "@/components/Table";
import type { MatchingQuality, MatchingSettings } from "@/lib/api/client";
import { formatFixed, formatPercent } from "@/lib/format";
import { qualityQuery, settingsQuery } from "./api";
import { atThreshold, fieldText } from "./score";
import styles from "./matching.module.css";

interface Props {
  cluster: string;
  /** A link to the form that takes over learned weights. */
  settings: ReactNode;
}

/** Show how good the matching is on the tenant's own records, over thresholds, and the weights that the records teach. */
export function Quality({ cluster, settings }: Props) {
  const { data, error, refetch } = useQuery(qualityQuery(cluster));
  const rules = useQuery(settingsQuery(cluster));
  if (data === undefined) return error === null ? <Loading what={t`quality`} /> : <Problem error={error} again={() => void refetch()} />;
  return (
    <div className={styles.stack}>
      <Card title={t`Precision and recall`}>
        {data.pairs === 0 ? <NoPairs quality={data} /> : <Curve quality={data} />}
      </Card>
      <Card title={t`Weights`} actions={settings}>
        {data.learned === null ? <TooFew quality={data} /> : null}
        {rules.data === undefined ? (
          rules.error === null ? <Loading what={t`settings`} /> : <Problem error={rules.error} again={() => void rules.refetch()} />
        ) : (
          <Weights settings={rules.data} learned={data.learned} />
        )}
      </Card>
    </div>
  );
}

function NoPairs({ quality: { records } }: { quality: MatchingQuality }) {
  return (
    <Empty title={t`Not enough records to measure the matching`}>
      <p>
        {plural(records, { one: "# active record has the name of an application", other: "# active records have the name of an application" })}.{" "}
        {t`A pair of records of the same application shows whether one finds the other, and there is none. Until there are pairs, keep the default weights and threshold. Tune the same application again, for example with another input or number of nodes, as a study with a name of its own:`}
      </p>
      <Code>trimtab tune study.yaml --name another-size</Code>
    </Empty>
  );
}

function TooFew({ quality: { learnable } }: { quality: MatchingQuality }) {
  return (
    <p className={styles.note}>
      {t`Weights are learned from at least two applications with four records each; there ${plural(learnable, { one: "is # such application", other: "are # such applications" })}. Until then the default weights of the published method are a good choice.`}
    </p>
  );
}

function Curve({ quality }: { quality: MatchingQuality }) {
  const option = useCallback((palette: Palette) => curveOption(palette, quality), [quality]);
  const now = atThreshold(quality.qualities, quality.threshold);
  const known = now === undefined ? null : { precision: formatPercent(now.precision, 1), recall: formatPercent(now.recall, 1) };
  return (
    <div className={styles.values}>
      <dl className={styles.facts}>
        <Fact name={t`Labelled pairs`}>{String(quality.pairs)}</Fact>
        <Fact name={t`Records`}>
          {String(quality.records)} <span className={styles.soft}>{t`${String(quality.related)} with another of the same application`}</span>
        </Fact>
        <Fact name={t`Present threshold`}>{String(quality.threshold)}</Fact>
        {known === null ? null : (
          <>
            <Fact name={t`Precision there`}>{known.precision}</Fact>
            <Fact name={t`Recall there`}>{known.recall}</Fact>
          </>
        )}
      </dl>
      <Chart
        name="matching-quality"
        label={
          known === null
            ? t`Precision and recall over thresholds.`
            : t`Precision and recall over thresholds; ${known.precision} and ${known.recall} at the present threshold ${String(quality.threshold)}.`
        }
        height={300}
        option={option}
      />
      <p className={styles.note}>
        {t`Each record is searched among the others. Precision is the share of matches with the right application, recall the share of records that find another of their application. A wrong match applies settings of another application, so prefer precision.`}
      </p>
      {quality.pairs < 20 ? <p className={styles.note}>{t`Fewer than 20 pairs say little: one more record can change the curve much.`}</p> : null}
    </div>
  );
}

function Weights({ settings, learned }: { settings: MatchingSettings; learned: MatchingQuality["learned"] }) {
  const total = Object.values(settings.weights).reduce((sum, weight) => sum + weight, 0);
  const best = learned === null ? undefined : atThreshold(learned.qualities, learned.threshold);
  return (
    <>
      <Wide label={t`Weights`}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{t`Feature`}</th>
              <th scope="col" className={styles.number}>{t`Published`}</th>
              <th scope="col" className={styles.number}>{t`Present`}</th>
              {learned === null ? null : <th scope="col" className={styles.number}>{t`Learned`}</th>}
            </tr>
          </thead>
          <tbody>
            {Object.entries(settings.usual_weights).map(([field, usual]) => (
              <tr key={field}>
                <th scope="row">{fieldText(field)}</th>
                <td className={styles.number}>{formatFixed(usual, 3)}</td>
                <td className={styles.number}>{formatFixed((settings.weights[field] ?? 0) / total, 3)}</td>
                {learned === null ? null : <td className={styles.number}>{formatFixed(learned.weights[field] ?? 0, 3)}</td>}
              </tr>
            ))}
            <tr className={styles.last}>
              <th scope="row">{t`Threshold`}</th>
              <td className={styles.number}>{String(settings.usual_threshold)}</td>
              <td className={styles.number}>{String(settings.threshold)}</td>
              {learned === null ? null : <td className={styles.number}>{String(learned.threshold)}</td>}
            </tr>
          </tbody>
        </table>
      </Wide>
      {best === undefined ? null : (
        <p className={styles.note}>
          {t`Learned from one half of the records. On the other half, the learned weights reach a precision of ${formatPercent(best.precision, 1)} and a recall of ${formatPercent(best.recall, 1)}.`}
        </p>
      )}
    </>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function curveOption(palette: Palette, { qualities, learned, threshold }: MatchingQuality): EChartsOption {
  const [blue, orange] = [palette.series[0] ?? palette.accent, palette.series[1] ?? palette.warn];
  const present = [
    { name: t`Precision`, color: blue, data: qualities.map((one) => [one.threshold, one.precision]), type: "solid" as const },
    { name: t`Recall`, color: orange, data: qualities.map((one) => [one.threshold, one.recall]), type: "solid" as const },
  ];
  const taught = [
    { name: t`Precision, learned weights`, color: blue, data: (learned?.qualities ?? []).map((one) => [one.threshold, one.precision]), type: "dotted" as const },
    { name: t`Recall, learned weights`, color: orange, data: (learned?.qualities ?? []).map((one) => [one.threshold, one.recall]), type: "dotted" as const },
  ];
  const lines = learned === null ? present : [...present, ...taught];
  return {
    ...frame(palette),
    tooltip: {
      ...frame(palette).tooltip,
      trigger: "axis",
      formatter: (items) => {
        const found = items as unknown as { seriesName: string; data: [number, number] }[];
        const [first] = found;
        if (first === undefined) return "";
        return [t`Threshold ${String(first.data[0])}`, ...found.map(({ seriesName, data }) => `${seriesName}: ${formatPercent(data[1], 1)}`)].join("\n");
      },
    },
    // The padding leaves space for the save button.
    legend: { top: 0, left: 0, padding: [5, 48, 5, 0], type: "scroll", textStyle: { color: palette.text, fontSize: 12 } },
    grid: { left: 8, right: 20, top: 52, bottom: 26, containLabel: true },
    xAxis: { type: "value", min: 0.5, max: 1, name: t`Threshold`, nameLocation: "middle", nameGap: 28, ...scaleAxis(palette, (value) => formatFixed(value, 1)) },
    yAxis: { type: "value", min: 0, max: 1, ...scaleAxis(palette, (value) => `${Math.round(value * 100)} %`), axisLine: axis(palette).axisLine },
    series: lines.map(({ name, color, data, type }, place) => ({
      name,
      type: "line" as const,
      showSymbol: false,
      data,
      lineStyle: { color, type, width: 2 },
      itemStyle: { color },
      ...(place > 0 || threshold < 0.5
        ? {}
        : {
            markLine: {
              silent: true,
              symbol: "none",
              data: [{ xAxis: threshold }],
              lineStyle: { color: palette.text, type: "dashed" as const, width: 1.5 },
              label: { formatter: t`present threshold ${String(threshold)}`, color: palette.text, fontSize: 12 },
            },
          }),
    })),
  };
}
