import { useId, useState, type ReactNode } from "react";
import { Card } from "@/components/Card";
import { CopyButton } from "@/components/CopyButton";
import type { Analysis, Measured, Objective, StudySpec } from "@/lib/api/client";
import { formatMetric, formatValue, unitOf } from "@/lib/format";
import { compare } from "./configuration";
import styles from "./BestConfiguration.module.css";

// With more rows than this only those that differ from the default are shown at first.
const MANY = 12;

/** The best configuration beside the default; with several objectives, one of the Pareto set at a time. `again`: a button that measures it anew. */
export function BestConfiguration({ spec, analysis, again }: { spec: StudySpec; analysis: Analysis; again?: (best: Measured) => ReactNode }) {
  const [chosen, choose] = useState<number | null>(null);
  const best = analysis.best.find(({ numbers }) => numbers[0] === chosen) ?? analysis.best[0];
  const title = analysis.best.length > 1 ? "Best trade-offs" : "Best configuration";
  if (best === undefined) {
    return (
      <Card title={title}>
        <p className={styles.none}>It is shown here as soon as a trial has completed.</p>
      </Card>
    );
  }
  return (
    <Card
      title={title}
      flush
      actions={
        <>
          {again?.(best)}
          <CopyButton label="Copy as JSON" text={JSON.stringify(best.params, null, 2)} />
        </>
      }
    >
      {analysis.best.length > 1 ? <Front objectives={spec.objectives} front={analysis.best} chosen={best} choose={choose} /> : null}
      <Comparison spec={spec} best={best} analysis={analysis} />
    </Card>
  );
}

function Front({ objectives, front, chosen, choose }: { objectives: Objective[]; front: Measured[]; chosen: Measured; choose: (first: number) => void }) {
  const group = useId();
  return (
    <fieldset className={styles.front}>
      <legend>None of these is worse than another in every objective:</legend>
      {front.map((measured) => (
        <label key={measured.numbers[0]} className={styles.member}>
          <input type="radio" name={group} checked={measured === chosen} onChange={() => choose(measured.numbers[0] ?? 0)} />
          <span className={styles.number}>#{measured.numbers[0]}</span>
          {objectives.map((objective) => (
            <span key={objective.metric}>
              {objective.metric} <b>{formatMetric(measured.metrics[objective.metric] ?? NaN, unitOf(objective))}</b>
            </span>
          ))}
        </label>
      ))}
    </fieldset>
  );
}

function Comparison({ spec, best, analysis }: { spec: StudySpec; best: Measured; analysis: Analysis }) {
  const [all, setAll] = useState(false);
  const rows = compare(spec, best.params, analysis.default_params);
  const differing = rows.filter(({ differs }) => differs);
  const many = rows.length > MANY && differing.length < rows.length;
  const shown = many && !all ? differing : rows;
  return (
    <>
      <div className={styles.scroll}>
        <table className={styles.table}>
          <thead>
            <tr>
              <th scope="col">Parameter</th>
              <th scope="col">Best</th>
              <th scope="col">Default</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <tr key={row.name} className={row.differs ? styles.differs : undefined}>
                <th scope="row">{row.name}</th>
                <td>
                  {formatValue(row.value)}
                  {row.differs ? <span className="visually-hidden"> (differs from the default)</span> : null}
                </td>
                <td>{formatValue(row.standard)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className={styles.note}>
        Trial {best.numbers.join(", ")}. {differing.length} of {rows.length} parameters differ from the default.{" "}
        {many ? (
          <button type="button" className={styles.link} onClick={() => setAll(!all)}>
            {all ? "Show the differences only" : `Show all ${rows.length}`}
          </button>
        ) : null}
      </p>
    </>
  );
}
