import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Card } from "@/components/Card";
import { Wide } from "@/components/Table";
import type { Dependence, InsightData, Objective } from "@/lib/api/client";
import { formatFixed, formatPercent, formatNumber } from "@/lib/format";
import styles from "./analysis.module.css";

/** Show the correlations of the objectives, and which objectives are linear functions of others; nothing if chance explains all of them. */
export function Correlations({ objectives, data, configurations }: { objectives: Objective[]; data: InsightData; configurations: number }) {
  if (data.dependences.length === 0 && !isTelling(data.correlations, configurations)) return null;
  if (objectives.length === 2 && data.dependences.length === 0) {
    const value = data.correlations[0]?.[1] ?? 0;
    return (
      <Card title={t`Relations between objectives`}>
        <p>
          {value > 0
            ? t`The Pearson correlation of ${objectives[0]?.metric ?? ""} and ${objectives[1]?.metric ?? ""} is ${formatFixed(value, 2)} over ${formatNumber(configurations)} configurations: they increase together.`
            : t`The Pearson correlation of ${objectives[0]?.metric ?? ""} and ${objectives[1]?.metric ?? ""} is ${formatFixed(value, 2)} over ${formatNumber(configurations)} configurations: one increases where the other decreases.`}
        </p>
      </Card>
    );
  }
  return (
    <Card title={t`Relations between objectives`}>
      <Wide label={t`Correlations`}>
        <table className={`${styles.table} ${styles.matrix}`}>
          <caption className="visually-hidden">{t`Correlations of objectives`}</caption>
          <thead>
            <tr>
              <td />
              {objectives.map(({ metric }) => (
                <th key={metric} scope="col">
                  {metric}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {objectives.map(({ metric }, row) => (
              <tr key={metric}>
                <th scope="row">{metric}</th>
                {objectives.map((other, column) => (
                  <Correlation key={other.metric} value={data.correlations[row]?.[column] ?? null} own={row === column} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {relations(data.dependences).map(({ metric, coefficients, constant, explained }) => (
        <p key={metric} className={styles.sentence}>
          <Trans>
            {[metric, ...Object.keys(coefficients)].join(", ")} are linearly dependent: <b>{metric}</b> = {linear(coefficients, constant)}, which explains{" "}
            {formatPercent(explained)} of its variance. One of them adds no information. The search is easier without it.
          </Trans>
        </p>
      ))}
      {data.dependences.length === 0 ? <p className={styles.note}>{t`No objective is a linear function of the others. The table shows Pearson correlations over configurations.`}</p> : null}
    </Card>
  );
}

/** Return whether a correlation is so far from zero that chance alone gives it in less than 5 % of cases (Fisher's transformation). */
function isTelling(correlations: InsightData["correlations"], configurations: number): boolean {
  if (configurations < 4) return false;
  const limit = 1.96 / Math.sqrt(configurations - 3);
  return correlations.some((row, first) => row.some((value, second) => first < second && value !== null && Math.atanh(Math.min(Math.abs(value), 0.999999)) > limit));
}

function Correlation({ value, own }: { value: number | null; own: boolean }) {
  if (value === null) return <td>—</td>;
  const strength = own ? 0 : Math.round(Math.abs(value) * 45);
  return <td style={{ background: `color-mix(in srgb, var(--series-${value < 0 ? 2 : 1}) ${strength}%, transparent)` }}>{formatFixed(value, 2)}</td>;
}

/** Return each relation once. It may be found for several of its objectives; the last of these is kept, as the one that was added. */
function relations(dependences: Dependence[]): Dependence[] {
  const found = new Map<string, Dependence>();
  for (const one of dependences) found.set([one.metric, ...Object.keys(one.coefficients)].sort().join(" "), one);
  return [...found.values()];
}

function linear(coefficients: Record<string, number>, constant: number): string {
  const terms = Object.entries(coefficients).map(([metric, slope]) => `${formatNumber(slope)} · ${metric}`);
  if (Math.abs(constant) > 1e-9 || terms.length === 0) terms.push(formatNumber(constant));
  return terms.join(" + ").replaceAll("+ \u2212", "\u2212 ");
}
