import { plural, t } from "@lingui/core/macro";
import { useId } from "react";
import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import type { Configuration, Plan } from "@/lib/api/client";
import { Estimate } from "./BudgetStep";
import { formatNumber, formatSpace } from "@/lib/format";
import { FaultAt } from "./FaultAt";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { textOf } from "@/lib/values";
import { Able } from "./What";
import { standardOf, Values, WouldRun } from "./WouldRun";

interface Props {
  draft: Draft;
  plan: Plan | undefined;
  tags: string;
  onTags: (tags: string) => void;
}

/** Name the study and review its plan. */
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
                  hint={t`Letters, digits and the characters . _ -`}
                  error={error}
                  onChange={(event) => draft.set(["name"], event.target.value || undefined)}
                />
              )}
            </FaultAt>
            <FaultAt at="tags">
              {(error) => <TextField label={t`Tags`} hint={t`Separate tags with commas.`} value={tags} error={error} onChange={(event) => onTags(event.target.value)} />}
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
          <Card title={t`Summary`}>
            <div className={styles.stack}>
              <dl className={styles.facts}>
                <div>
                  <dt>{t`Search space`}</dt>
                  <dd>
                    {plural(plan.spec.space.parameters.length, { one: "# parameter", other: "# parameters" })},{" "}
                    {plan.size === null ? t`continuous` : formatSpace({ size: plan.size, feasible: plan.feasible })}
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
                  <dd>{plan.spec.budget?.max_trials == null ? t`no limit` : formatNumber(plan.spec.budget.max_trials)}</dd>
                </div>
                {plan.started_from.length === 0 ? null : (
                  <div>
                    <dt>{t`From earlier studies`}</dt>
                    <dd>
                      {plural(plan.started_from.reduce((sum, { taken }) => sum + taken, 0), {
                        one: "# configuration is measured first",
                        other: "# configurations are measured first",
                      })}
                    </dd>
                  </div>
                )}
                {plan.spec.execution ? (
                  <div>
                    <dt>{t`Trials at once`}</dt>
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

/** Show the configurations that are measured first, and the commands that an agent would run for each. */
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
              <b>{index + 1}</b> <Values configuration={configuration} standard={index === 0 ? undefined : standardOf(spec)} />
            </p>
          ))
        )}
        {shown.length < 3 ? (
          <p className={styles.soft}>
            {shown.length === 0
              ? t`A worker computes the first configurations after the study has started.`
              : t`A worker computes further configurations after the study has started.`}
          </p>
        ) : null}
      </div>
    </Card>
  );
}
