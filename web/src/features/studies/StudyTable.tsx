import type { ReactNode } from "react";
import { StateBadge } from "@/components/Badge";
import { Progress } from "@/components/Progress";
import { Ago } from "@/components/Time";
import type { ListedStudy, ObjectiveProgress } from "@/lib/api/client";
import { formatGain, formatMetric, unitOf } from "@/lib/format";
import styles from "./StudyTable.module.css";

interface Props {
  studies: ListedStudy[];
  /** A link to a study's page. */
  link: (name: string) => ReactNode;
}

/** Studies, one a row; on a narrow screen one a card. */
export function StudyTable({ studies, link }: Props) {
  return (
    <table className={styles.table}>
      <thead>
        <tr>
          <th scope="col">Study</th>
          <th scope="col">State</th>
          <th scope="col">Algorithm</th>
          <th scope="col">Trials</th>
          <th scope="col" className={styles.number}>
            Best
          </th>
          <th scope="col" className={styles.number}>
            Gain
          </th>
          <th scope="col" className={styles.number}>
            Updated
          </th>
        </tr>
      </thead>
      <tbody>
        {studies.map((study) => (
          <tr key={study.name}>
            <th scope="row" className={styles.name}>
              {link(study.name)}
              {study.spec.execution ? <span className={styles.component}>{study.spec.execution.component}</span> : null}
            </th>
            <td data-label="State">
              <StateBadge state={study.state} />
            </td>
            <td data-label="Algorithm">{study.spec.algorithm?.name}</td>
            <td data-label="Trials" className={styles.progress}>
              <Progress done={study.finished_count} of={study.spec.budget?.max_trials} unit={study.finished_count === 1 ? "trial" : "trials"} />
            </td>
            <td data-label="Best" className={styles.number}>
              <div>{study.objectives?.map((objective) => <Best key={objective.metric} objective={objective} />)}</div>
            </td>
            <td data-label="Gain" className={styles.number}>
              <div>{study.objectives?.map((objective) => <Gain key={objective.metric} objective={objective} />)}</div>
            </td>
            <td data-label="Updated" className={`${styles.number} ${styles.soft}`}>
              <Ago at={study.updated_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Best({ objective }: { objective: ObjectiveProgress }) {
  const value = objective.best === null ? "—" : formatMetric(objective.best, unitOf(objective));
  return (
    <div title={`${objective.metric}, ${objective.goal}d`}>
      {value} {unitOf(objective) === "" ? <span className={styles.soft}>{objective.metric}</span> : null}
    </div>
  );
}

function Gain({ objective: { gain, default: start } }: { objective: ObjectiveProgress }) {
  if (gain === null) return <div className={styles.soft}>{start === null ? "—" : "no scale"}</div>;
  return <div className={gain > 0 ? styles.gain : gain < 0 ? styles.loss : styles.soft}>{formatGain(gain)}</div>;
}
