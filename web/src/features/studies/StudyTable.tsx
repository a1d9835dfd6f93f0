import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import { StateBadge, Tags } from "@/components/Badge";
import { FrontText } from "@/components/GainText";
import { Progress } from "@/components/Progress";
import { SortHeader } from "@/components/Table";
import { Trend } from "@/components/Trend";
import table from "@/components/Table.module.css";
import { Ago } from "@/components/Time";
import type { ListedStudy, SummarisedObjective } from "@/lib/api/client";
import { formatGain, formatGainInterval, formatMetric, tunedText, unitOf } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import { listedLevelText } from "@/lib/verdicts";
import styles from "./StudyTable.module.css";

interface Props {
  studies: ListedStudy[];
  sort: string;
  onSort: (sort: string) => void;
  /** Names of the selected studies, for actions on several. */
  chosen: ReadonlySet<string>;
  onChoose: (name: string, chosen: boolean) => void;
  /** A link to a study's page. */
  link: (name: string) => ReactNode;
}

/** A table of studies; on a narrow screen, each study is a card. */
export function StudyTable({ studies, sort, onSort, chosen, onChoose, link }: Props) {
  return (
    <table className={`${table.table} ${styles.studies}`}>
      <thead>
        <tr>
          <td className={styles.check} />
          <SortHeader text={t`Study`} by="name" sort={sort} onSort={onSort} />
          <SortHeader text={t`State`} by="state" sort={sort} onSort={onSort} />
          <SortHeader text={t`Trials`} by="trials" sort={sort} onSort={onSort} down />
          <SortHeader text={t`Best`} by="best" sort={sort} onSort={onSort} number />
          <SortHeader text={t`Gain`} by="gain" sort={sort} onSort={onSort} down number />
          <SortHeader text={t`Owner`} by="owner" sort={sort} onSort={onSort} />
          <SortHeader text={t`Updated`} by="updated" sort={sort} onSort={onSort} down number />
        </tr>
      </thead>
      <tbody>
        {studies.map((study) => (
          <tr key={study.name}>
            <td className={styles.check}>
              <input
                type="checkbox"
                aria-label={t`Select ${study.name}`}
                checked={chosen.has(study.name)}
                onChange={(event) => onChoose(study.name, event.target.checked)}
              />
            </td>
            <th scope="row" className={styles.name}>
              <span className={styles.title}>
                {link(study.name)} <Tags tags={study.tags} />
              </span>
              <span className={table.about}>{tunedText(study)} · {study.algorithm}</span>
            </th>
            <td data-label={t`State`}>
              <span className={styles.state}>
                <StateBadge state={study.state} />
                {study.state === "PAUSED" && study.state_reason !== "" ? <span className={styles.reason}>{reasonText(study.state_reason, study.state_reason_data)}</span> : null}
              </span>
            </td>
            <td data-label={t`Trials`} className={styles.progress}>
              <Progress study={study} of={study.max_trials} unit={plural(study.finished_count, { one: "trial", other: "trials" })} />
            </td>
            <td data-label={t`Best`} className={`${table.number} ${styles.bestCell}`}>
              <div>{study.objectives.length > 1 ? <FrontText objectives={study.objectives} /> : study.objectives.map((objective) => <Best key={objective.metric} objective={objective} />)}</div>
            </td>
            <td data-label={t`Gain`} className={`${table.number} ${styles.gainCell}`}>
              <div>{study.objectives.length > 1 ? "—" : study.objectives.map((objective) => <Gain key={objective.metric} objective={objective} />)}</div>
            </td>
            <td data-label={t`Owner`} className={`${styles.owner} ${table.soft}`}>
              {study.owner || "—"}
            </td>
            <td data-label={t`Updated`} className={`${styles.updated} ${table.number} ${table.soft}`}>
              <Ago at={study.updated_at} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Best({ objective }: { objective: SummarisedObjective }) {
  const value = objective.best === null ? "—" : formatMetric(objective.best, unitOf(objective));
  return (
    <div title={objective.goal === "minimize" ? t`${objective.metric}, minimized` : t`${objective.metric}, maximized`}>
      <Trend objective={objective} /> {value} {unitOf(objective) === "" ? <span className={table.soft}>{objective.metric}</span> : null}
    </div>
  );
}

function Gain({ objective }: { objective: SummarisedObjective }) {
  const { gain, level, doubtful, rounds, default: start } = objective;
  if (gain === null) return <div className={table.soft}>{start === null ? "—" : t`not defined`}</div>;
  const interval = formatGainInterval(objective);
  return (
    <div>
      <span className={level === "proven" ? styles.gain : gain < 0 ? styles.loss : table.soft}>{formatGain(gain)}</span>
      {interval === null ? null : (
        <span className={styles.interval} title={t`95 % interval of the gain`}>
          {interval}
        </span>
      )}
      {level ? <span className={styles.interval}>{listedLevelText(objective)}</span> : null}
      {objective.context_words ? <span className={styles.interval}>{t`for ${objective.context_words}`}</span> : null}
      {doubtful && !rounds ? <span className={styles.interval}>{plural(doubtful, { one: "# doubtful timing", other: "# doubtful timings" })}</span> : null}
    </div>
  );
}
