import type { ReactNode } from "react";
import { StateBadge } from "@/components/Badge";
import { Progress } from "@/components/Progress";
import { SortHeader } from "@/components/SortHeader";
import { Tags } from "@/components/Tags";
import { Ago } from "@/components/Time";
import type { ListedStudy, SummarisedObjective } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatMetric, unitOf } from "@/lib/format";
import styles from "./StudyTable.module.css";

interface Props {
  studies: ListedStudy[];
  sort: string;
  onSort: (sort: string) => void;
  /** Names of those that are chosen, for what is done to several. */
  chosen: ReadonlySet<string>;
  onChoose: (name: string, chosen: boolean) => void;
  /** A link to a study's page. */
  link: (name: string) => ReactNode;
}

/** Studies, one a row; on a narrow screen one a card. */
export function StudyTable({ studies, sort, onSort, chosen, onChoose, link }: Props) {
  return (
    <table className={styles.table}>
      <thead>
        <tr>
          <td className={styles.check} />
          <SortHeader text="Study" by="name" sort={sort} onSort={onSort} />
          <SortHeader text="State" by="state" sort={sort} onSort={onSort} />
          <SortHeader text="Trials" by="trials" sort={sort} onSort={onSort} down />
          <SortHeader text="Best" by="best" sort={sort} onSort={onSort} number />
          <SortHeader text="Gain" by="gain" sort={sort} onSort={onSort} down number />
          <SortHeader text="Owner" by="owner" sort={sort} onSort={onSort} />
          <SortHeader text="Updated" by="updated" sort={sort} onSort={onSort} down number />
        </tr>
      </thead>
      <tbody>
        {studies.map((study) => (
          <tr key={study.name}>
            <td className={styles.check}>
              <input
                type="checkbox"
                aria-label={`Choose ${study.name}`}
                checked={chosen.has(study.name)}
                onChange={(event) => onChoose(study.name, event.target.checked)}
              />
            </td>
            <th scope="row" className={styles.name}>
              <span className={styles.title}>
                {link(study.name)} <Tags tags={study.tags} />
              </span>
              <span className={styles.component}>{about(study)}</span>
            </th>
            <td data-label="State">
              <span className={styles.state}>
                <StateBadge state={study.state} />
                {study.state === "PAUSED" && study.state_reason !== "" ? <span className={styles.reason}>{study.state_reason}</span> : null}
              </span>
            </td>
            <td data-label="Trials" className={styles.progress}>
              <Progress done={study.finished_count} of={study.max_trials} unit={study.finished_count === 1 ? "trial" : "trials"} />
            </td>
            <td data-label="Best" className={styles.number}>
              <div>{study.objectives.map((objective) => <Best key={objective.metric} objective={objective} />)}</div>
            </td>
            <td data-label="Gain" className={styles.number}>
              <div>{study.objectives.map((objective) => <Gain key={objective.metric} objective={objective} />)}</div>
            </td>
            <td data-label="Owner" className={`${styles.owner} ${styles.soft}`}>
              {study.owner || "—"}
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

/** What is tuned, and by what. */
function about({ component, application, algorithm }: ListedStudy): string {
  const tuned = component === "" ? "asked and told" : application === "" ? component : `${component} / ${application}`;
  return `${tuned} · ${algorithm}`;
}

function Best({ objective }: { objective: SummarisedObjective }) {
  const value = objective.best === null ? "—" : formatMetric(objective.best, unitOf(objective));
  return (
    <div title={`${objective.metric}, ${objective.goal}d`}>
      {value} {unitOf(objective) === "" ? <span className={styles.soft}>{objective.metric}</span> : null}
    </div>
  );
}

function Gain({ objective }: { objective: SummarisedObjective }) {
  const { gain, default: start } = objective;
  if (gain === null) return <div className={styles.soft}>{start === null ? "—" : "no scale"}</div>;
  const interval = formatGainInterval(objective);
  return (
    <div>
      <span className={gain > 0 ? styles.gain : gain < 0 ? styles.loss : styles.soft}>{formatGain(gain)}</span>
      {interval === null ? null : (
        <span className={styles.interval} title="The gain lies between these with 95 %">
          {interval}
        </span>
      )}
    </div>
  );
}
