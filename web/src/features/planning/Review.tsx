import { plural, t } from "@lingui/core/macro";
import { useId } from "react";
import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import type { Configuration, Plan } from "@/lib/api/client";
import { Estimate } from "./BudgetStep";
import { configurations } from "./configurations";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { textOf } from "@/lib/values";
import { Able } from "./What";
import { Values, WouldRun } from "./WouldRun";

interface Props {
  draft: Draft;
  plan: Plan | undefined;
  tags: string;
  onTags: (tags: string) => void;
}

/** Its name, and what would happen. */
export function Review({ draft, plan, tags, onTags }: Props) {
  const { file } = draft;
  const note = useId();
  return (
    <>
      <Card title={t`Name and description`}>
        <div className={styles.stack}>
          <div className={styles.grid}>
            <FaultAt at="name">
              {(error) => (
                <TextField
                  label={t`Name`}
                  value={textOf(file.name)}
                  placeholder={t`my-study`}
                  hint={t`Letters, digits and . _ -`}
                  error={error}
                  onChange={(event) => draft.set(["name"], event.target.value || undefined)}
                />
              )}
            </FaultAt>
            <FaultAt at="tags">
              {(error) => <TextField label={t`Tags`} hint={t`With commas between them.`} value={tags} error={error} onChange={(event) => onTags(event.target.value)} />}
            </FaultAt>
          </div>
          <FaultAt at="description">
            {(error) => (
              <div className={styles.stack}>
                <label htmlFor={note}>
                  <b>{t`Description`}</b> <span className={styles.soft}>{t`A note on the study in Markdown, at most 10,000 characters.`}</span>
                </label>
                <textarea
                  id={note}
                  className={styles.yaml}
                  style={{ minHeight: "4rem", height: "7rem", whiteSpace: "pre-wrap" }}
                  value={textOf(file.description)}
                  aria-invalid={error === undefined ? undefined : true}
                  aria-describedby={error === undefined ? undefined : `${note}-error`}
                  onChange={(event) => draft.set(["description"], event.target.value || undefined)}
                />
                {error === undefined ? null : (
                  <p id={`${note}-error`} className={styles.error}>
                    {error}
                  </p>
                )}
              </div>
            )}
          </FaultAt>
        </div>
      </Card>
      {plan === undefined ? null : (
        <>
          <Card title={t`What will happen`}>
            <div className={styles.stack}>
              <dl className={styles.facts}>
                <div>
                  <dt>{t`Space`}</dt>
                  <dd>
                    {plural(plan.spec.space.parameters.length, { one: "# parameter", other: "# parameters" })},{" "}
                    {plan.size === null ? t`a continuum` : configurations(plan.size)}
                  </dd>
                </div>
                <div>
                  <dt>{t`Algorithm`}</dt>
                  <dd>
                    {plan.spec.algorithm?.name}
                    {plan.algorithm_choice === null ? "" : `: ${plan.algorithm_choice.name}`}
                  </dd>
                </div>
                <div>
                  <dt>{t`Trials`}</dt>
                  <dd>{plan.spec.budget?.max_trials ?? t`no limit`}</dd>
                </div>
                {plan.started_from.length === 0 ? null : (
                  <div>
                    <dt>{t`From earlier studies`}</dt>
                    <dd>
                      {plural(plan.started_from.reduce((sum, { taken }) => sum + taken, 0), {
                        one: "# configuration is tried first",
                        other: "# configurations are tried first",
                      })}
                    </dd>
                  </div>
                )}
                {plan.spec.execution ? (
                  <div>
                    <dt>{t`At once`}</dt>
                    <dd>{plan.spec.execution.parallelism}</dd>
                  </div>
                ) : null}
              </dl>
              {plan.spec.execution ? (
                <>
                  <Estimate plan={plan} />
                  <Able agents={plan.agents} />
                </>
              ) : null}
            </div>
          </Card>
          <First plan={plan} name={textOf(file.name)} />
        </>
      )}
    </>
  );
}

/** The configurations that are measured first, and what an agent would run for each. */
function First({ plan: { first, spec }, name }: { plan: Plan; name: string }) {
  const shown = first as Configuration[];
  return (
    <Card title={plural(shown.length, { one: "The first trial", other: "The first # trials" })}>
      <div className={styles.stack}>
        {spec.execution ? (
          <WouldRun spec={spec} name={name} configurations={shown} />
        ) : (
          shown.map((configuration, index) => (
            <p key={index}>
              <b>{index + 1}</b> <Values configuration={configuration} />
            </p>
          ))
        )}
        {shown.length < 3 ? (
          <p className={styles.soft}>
            {shown.length === 0
              ? t`What is measured first is worked out by a worker when the study has begun.`
              : t`What comes then is worked out by a worker when the study has begun.`}
          </p>
        ) : null}
      </div>
    </Card>
  );
}
