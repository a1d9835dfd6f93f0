import { plural, t } from "@lingui/core/macro";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Markdown } from "@/components/Markdown";
import { Progress } from "@/components/Progress";
import { Ago } from "@/components/Time";
import type { Study } from "@/lib/api/client";
import { SpaceEdits } from "@/features/studies/SpaceEdits";
import { formatDuration, formatNumber, formatValue } from "@/lib/format";
import { reasonText } from "@/lib/reasons";
import styles from "../pages.module.css";

/** Progress, budget, algorithm, search space, origin and description of a study, above its tabs. */
export function StudyFacts({ study }: { study: Study }) {
  const { algorithm, budget, description, execution, space } = study.spec;
  const [all, showAll] = useState(false);
  const waiting = study.requested_count;
  const open = [
    study.active_count > 0 ? t`${formatNumber(study.active_count)} running` : "",
    waiting > 0 ? t`${formatNumber(waiting)} waiting` : "",
    study.exhausted ? t`search space exhausted` : "",
  ].filter((text) => text !== "");
  return (
    <>
      <div className={all ? `${styles.factsRow} ${styles.allFacts}` : styles.factsRow}>
      <dl className={all ? styles.facts : `${styles.facts} ${styles.few}`}>
        <div>
          <dt>{t`Trials`}</dt>
          <dd>
            <Progress study={study} of={budget?.max_trials} unit={t`done`} />
            {open.length === 0 ? null : <span className={styles.soft}> {open.join(", ")}</span>}
          </dd>
        </div>
        {budget?.max_seconds ? (
          <div>
            <dt>{t`Time budget`}</dt>
            <dd>{formatDuration(budget.max_seconds)}</dd>
          </div>
        ) : null}
        {budget?.max_node_hours ? (
          <div>
            <dt>{t`Node-hours`}</dt>
            <dd>{t`at most ${formatNumber(budget.max_node_hours)}`}</dd>
          </div>
        ) : null}
        <div>
          <dt>{t`Algorithm`}</dt>
          <dd title={study.algorithm_choice === null ? undefined : reasonText(study.algorithm_choice.reason, study.algorithm_choice.reason_data)}>
            {algorithm?.name}
            {study.algorithm_choice === null ? null : <span className={styles.soft}> {t`selected ${study.algorithm_choice.name}`}</span>}
          </dd>
        </div>
        <div>
          <dt>{t`Search space`}</dt>
          <dd>
            {plural(space.parameters.length, { one: "# parameter", other: "# parameters" })}
            {space.constraints?.length ? `, ${plural(space.constraints.length, { one: "# constraint", other: "# constraints" })}` : ""}
            {Object.entries(study.fixed).map(([name, value]) => (
              <span key={name} className={styles.soft}>{t`${name} fixed to ${formatValue(value)}`}</span>
            ))}
          </dd>
        </div>
        {study.started_from.length === 0 ? null : (
          <div>
            <dt>{t`Started from`}</dt>
            <dd>
              {study.started_from.map(({ study: earlier, taken }) => (
                <span key={earlier}>
                  <Link to="/studies/$name" params={{ name: earlier }}>
                    {earlier}
                  </Link>{" "}
                  <span className={styles.soft}>{plural(taken, { one: "# configuration", other: "# configurations" })}</span>
                </span>
              ))}
            </dd>
          </div>
        )}
        {execution ? (
          <div>
            <dt>{t`Component`}</dt>
            <dd>
              {execution.component}
              {execution.application ? ` / ${execution.application}` : ""}
              {execution.parallelism ? t`, up to ${execution.parallelism} at once` : ""}
              {execution.placement ? (
                <span className={styles.soft}>
                  {" "}
                  {execution.placement.exclusive ? t`one trial per node` : t`trials share nodes`}
                  {execution.placement.spread ? t`, replicates on different nodes` : ""}
                </span>
              ) : null}
            </dd>
          </div>
        ) : null}
        {study.spec.stability ? (
          <div>
            <dt>{t`Stability`}</dt>
            <dd>{t`stages on ${(study.spec.stability.nodes ?? []).join(", ")} nodes`}</dd>
          </div>
        ) : null}
        <div>
          <dt>{t`Created`}</dt>
          <dd>
            <Ago at={study.created_at} />
            {study.owner === "" ? null : <span className={styles.soft}>{t`by ${study.owner}`}</span>}
          </dd>
        </div>
      </dl>
        <Button small kind="quiet" className={styles.moreFacts ?? ""} aria-expanded={all} onClick={() => showAll(!all)}>
          {all ? t`Fewer facts` : t`All facts`}
        </Button>
      </div>
      <SpaceEdits edits={study.space_edits} />
      {description ? <Description text={description} /> : null}
    </>
  );
}

/** Show the note on a study. Raw HTML appears as text, and images are left out. */
export function Description({ text }: { text: string }) {
  return (
    <details open={text.length <= 1000}>
      <summary>{t`Description`}</summary>
      <div style={{ marginTop: "0.6rem" }}>
        <Markdown text={text} />
      </div>
    </details>
  );
}
