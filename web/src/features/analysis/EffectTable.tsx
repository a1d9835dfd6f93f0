import { t } from "@lingui/core/macro";
import { useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { Wide } from "@/components/Wide";
import type { Configuration, InsightData, StudySpec } from "@/lib/api/client";
import { formatMetric, formatNumber, formatValue, unitOf } from "@/lib/format";
import { effectRows, type Worth } from "./effects";
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
