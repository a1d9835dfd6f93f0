import { t } from "@lingui/core/macro";
import { useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { Wide } from "@/components/Table";
import type { Configuration, InsightData, Scalar, StudySpec } from "@/lib/api/client";
import { formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import styles from "./analysis.module.css";

const FIRST = 15;

/** Show the effect of each option against the default, for each objective. */
export function EffectTable({ spec, data, standard }: { spec: StudySpec; data: InsightData; standard: Configuration }) {
  const [all, showAll] = useState(false);
  const rows = useMemo(() => effectRows(data, standard), [data, standard]);
  if (rows.length === 0) return <p className={styles.note}>{t`No parameter is a flag or has few options. See the curves above.`}</p>;
  const shown = all ? rows : rows.slice(0, FIRST);
  return (
    <>
      <Wide label={t`Effects`}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">{t`Parameter`}</th>
              <th scope="col">{t`From`}</th>
              <th scope="col">{t`To`}</th>
              {spec.objectives.map(({ metric }) => (
                <th key={metric} scope="col" className={styles.number}>
                  {metric}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {shown.map(({ parameter, level, worth }) => (
              <tr key={`${parameter} ${String(level)}`}>
                <th scope="row">{parameter}</th>
                <td>{formatValue(standard[parameter])}</td>
                <td>{formatValue(level)}</td>
                {spec.objectives.map((objective) => (
                  <Change key={objective.metric} goal={objective.goal} unit={unitOf(objective)} worth={worth.find(({ metric }) => metric === objective.metric)} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
      {rows.length > FIRST ? (
        <Button small kind="quiet" onClick={() => showAll(!all)}>
          {all ? t`Show fewer` : t`Show all ${formatNumber(rows.length)}`}
        </Button>
      ) : null}
      <p className={styles.note}>{t`Averaged over the other parameters, estimated by a regression forest; ± one standard deviation between its trees. Colour marks a change of more than two standard deviations.`}</p>
    </>
  );
}

function Change({ goal, unit, worth }: { goal: "minimize" | "maximize"; unit: string; worth: Worth | undefined }) {
  if (worth === undefined) return <td className={styles.number}>—</td>;
  const { change, deviation } = worth;
  const sure = Math.abs(change) > 2 * deviation;
  const better = goal === "minimize" ? change < 0 : change > 0;
  return (
    <td className={styles.number}>
      <span className={sure ? (better ? styles.good : styles.bad) : undefined}>
        {change > 0 ? "+" : ""}
        {formatMetric(change, unit, 3)}
      </span>{" "}
      <span className={styles.soft}>± {formatMetric(deviation, unit, 2)}</span>
      {sure ? <span className="visually-hidden"> {better ? t`(better)` : t`(worse)`}</span> : null}
    </td>
  );
}

/** The effect of a level of a parameter against its default level, for one objective. */
interface Worth {
  metric: string;
  change: number;
  /** Standard deviation of the change, estimated by the model. */
  deviation: number;
}

export interface EffectRow {
  parameter: string;
  level: Scalar;
  worth: Worth[];
}

// A parameter with more levels than this is a scale: its curve shows more than a table.
const FEW = 8;

/** Return the effect of each level of each option against the default, averaged over the other parameters, most important first. */
export function effectRows({ objectives }: InsightData, standard: Configuration): EffectRow[] {
  const rows = new Map<string, EffectRow & { size: number }>();
  for (const { metric, effects } of objectives) {
    for (const { parameter, levels, change, importance } of effects) {
      const base = levels.findIndex((level) => level === standard[parameter]);
      if (levels.length > FEW || base < 0) continue;
      levels.forEach((level, index) => {
        if (index === base) return;
        const key = `${parameter} ${JSON.stringify(level)}`;
        const row = rows.get(key) ?? { parameter, level, worth: [], size: 0 };
        row.worth.push({ metric, change: change.mean[index] ?? NaN, deviation: change.deviation[index] ?? NaN });
        row.size = Math.max(row.size, importance);
        rows.set(key, row);
      });
    }
  }
  return [...rows.values()].sort((a, b) => b.size - a.size).map(({ parameter, level, worth }) => ({ parameter, level, worth }));
}
