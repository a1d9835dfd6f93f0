import { Card } from "@/components/Card";
import { TextField } from "@/components/Field";
import { Code, Problem } from "@/components/Message";
import type { Configuration, Plan } from "@/lib/api/client";
import { formatDigits, formatValue } from "@/lib/format";
import { Estimate } from "./BudgetStep";
import { tryCommand } from "./commands";
import type { Fault } from "./faults";
import { messageFor } from "./faults";
import styles from "./planning.module.css";
import type { Draft } from "./useDraft";
import { textOf } from "./values";
import { Able } from "./What";

interface Props {
  draft: Draft;
  plan: Plan | undefined;
  fault: Fault | null;
  tags: string;
  onTags: (tags: string) => void;
  /** What is measured before anything else is chosen; of the component. */
  refused: Error | null;
}

/** Its name, and what would happen. */
export function Review({ draft, plan, fault, tags, onTags, refused }: Props) {
  const { file } = draft;
  const fieldless = fault !== null && fault.field === "" ? refused : null;
  return (
    <>
      <Card title="Name">
        <div className={styles.grid}>
          <TextField
            label="Name"
            value={textOf(file.name)}
            placeholder="my-study"
            hint="Letters, digits and . _ -"
            error={messageFor(fault, "name")}
            onChange={(event) => draft.set(["name"], event.target.value || undefined)}
          />
          <TextField label="Tags" hint="With commas between them." value={tags} error={messageFor(fault, "tags")} onChange={(event) => onTags(event.target.value)} />
        </div>
      </Card>
      {fieldless === null ? null : <Problem error={fieldless} />}
      {plan === undefined ? null : (
        <>
          <Card title="What will happen">
            <div className={styles.stack}>
              <dl className={styles.facts}>
                <div>
                  <dt>Space</dt>
                  <dd>
                    {plan.spec.space.parameters.length} parameters, {plan.size === null ? "a continuum" : `${formatDigits(plan.size)} configurations`}
                  </dd>
                </div>
                <div>
                  <dt>Designer</dt>
                  <dd>
                    {plan.spec.algorithm?.name}
                    {plan.algorithm_choice === null ? "" : `: ${plan.algorithm_choice.name}`}
                  </dd>
                </div>
                <div>
                  <dt>Trials</dt>
                  <dd>{plan.spec.budget?.max_trials ?? "no limit"}</dd>
                </div>
                {plan.spec.execution ? (
                  <div>
                    <dt>At once</dt>
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
          <First plan={plan} />
        </>
      )}
    </>
  );
}

/** The configurations that are measured first. How the agent runs them is known on its machine alone: no command leaves it. */
function First({ plan: { first, spec } }: { plan: Plan }) {
  const { execution } = spec;
  const configurations = first as Configuration[];
  return (
    <Card title={configurations.length === 1 ? "The first trial" : `The first ${configurations.length} trials`}>
      <div className={styles.stack}>
        {execution ? (
          <p className={styles.soft}>
            The service knows values, never commands: those stay with the agent&rsquo;s administrator. On its machine, this shows each trial&rsquo;s command line,
            environment and scheduler options exactly as it would run, and runs nothing:
          </p>
        ) : null}
        {configurations.map((configuration, index) =>
          execution ? (
            <Code key={index}>{tryCommand(execution.component, execution.application ?? "", configuration)}</Code>
          ) : (
            <p key={index}>
              <b>{index + 1}</b>{" "}
              <code>
                {Object.entries(configuration)
                  .map(([name, value]) => `${name} = ${formatValue(value)}`)
                  .join(", ")}
              </code>
            </p>
          ),
        )}
        {configurations.length < 3 ? (
          <p className={styles.soft}>
            {configurations.length === 0 ? "What is measured first" : "What comes then"} is worked out by a worker when the study has begun.
          </p>
        ) : null}
      </div>
    </Card>
  );
}
