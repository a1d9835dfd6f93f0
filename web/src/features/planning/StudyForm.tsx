import { useQuery } from "@tanstack/react-query";
import { useId, useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { ApiError, type Component, type Parameter, type StudySpec } from "@/lib/api/client";
import { useThrottled } from "@/lib/clock";
import { methodsQuery, planQuery, useCreateStudy } from "./api";
import { BudgetStep } from "./BudgetStep";
import { faultOf, stepOf, type Fault, type Step } from "./faults";
import { Goals } from "./Goals";
import { MethodStep } from "./MethodStep";
import styles from "./planning.module.css";
import { Review } from "./Review";
import { Space } from "./Space";
import { FileFault, parametersOf, toSpec } from "./studyFile";
import type { Draft } from "./useDraft";
import { textOf } from "./values";
import { What } from "./What";
import { YamlEditor } from "./YamlEditor";

interface Props {
  draft: Draft;
  components: readonly Component[];
  /** The chosen component's parameters and metrics; undefined while they are not known yet. */
  space: readonly Parameter[] | undefined;
  metrics: readonly string[];
  onComponent: (name: string) => void;
  onCreated: (name: string) => void;
}

const STEPS: readonly [Step, string][] = [
  ["what", "What"],
  ["space", "Parameters"],
  ["goals", "Objectives"],
  ["method", "Method"],
  ["budget", "Budget"],
  ["review", "Review"],
];
const NOT_ALL = ["a name", "parameters", "objectives"];

/** A new study, step by step, and beside it the same as a file. */
export function StudyForm({ draft, components, space, metrics, onComponent, onCreated }: Props) {
  const [step, setStep] = useState<Step>("what");
  const [tags, setTags] = useState("");
  const request = useId();
  const [tries, setTries] = useState(0);
  const [sent, setSent] = useState("");
  const { file, unreadable } = draft;
  const made = useMemo(() => specOf(draft, space), [draft, space]);
  const spec = useThrottled(made instanceof Error ? null : made, 400);
  const plan = useQuery({ ...planQuery(spec ?? EMPTY), enabled: spec !== null && isWhole(spec) });
  const { data: methods } = useQuery(methodsQuery);
  const create = useCreateStudy();

  const parameters = useMemo(() => tunedOf(draft, space), [draft, space]);
  // What was refused before it was changed says nothing of what it is now.
  const rejected = sent === draft.text ? create.error : null;
  const refused = made instanceof Error ? made : (rejected ?? (isWhole(made) ? plan.error : null));
  const fault: Fault | null = refused === null ? null : faultOf(refused, parameters);
  const shown = made instanceof Error || plan.error !== null ? undefined : plan.data;
  const missing = made instanceof Error ? [] : NOT_ALL.filter((_, index) => [textOf(file.name) === "", parameters.length === 0, made.objectives.length === 0][index]);
  const place = STEPS.findIndex(([name]) => name === step);

  function submit() {
    if (made instanceof Error) return;
    setSent(draft.text);
    create.mutate(
      { name: textOf(file.name), spec: made, tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean), request_id: `${request}${begun}${tries}` },
      {
        onSuccess: ({ name }) => onCreated(name),
        onError: (error) => {
          // What was refused was not created: the next one is another request. What was not answered may have been.
          if (error instanceof ApiError && error.status >= 400 && error.status < 500) setTries(tries + 1);
          setStep(stepOf(faultOf(error, parameters).field));
        },
      },
    );
  }
  const marked = fault === null ? null : stepOf(fault.field);
  return (
    <div className={styles.layout}>
      <div className={styles.form}>
        <nav aria-label="Steps">
          <ol className={styles.steps}>
            {STEPS.map(([name, text]) => (
              <li key={name}>
                <button type="button" aria-current={name === step ? "step" : undefined} onClick={() => setStep(name)}>
                  {text}
                  {marked === name ? (
                    <span className={styles.mark} title={fault?.message}>
                      !<span className="visually-hidden"> has a fault</span>
                    </span>
                  ) : null}
                </button>
              </li>
            ))}
          </ol>
        </nav>
        <fieldset className={styles.form} disabled={unreadable !== null} onChange={() => create.reset()}>
          <legend className="visually-hidden">{STEPS[place]?.[1]}</legend>
          {step === "what" ? <What draft={draft} components={components} agents={shown?.agents} fault={fault} onComponent={onComponent} /> : null}
          {step === "space" ? <Space draft={draft} space={space ?? []} plan={shown} fault={fault} /> : null}
          {step === "goals" ? <Goals draft={draft} metrics={metrics} fault={fault} /> : null}
          {step === "method" && methods !== undefined ? <MethodStep draft={draft} methods={methods} plan={shown} fault={fault} /> : null}
          {step === "budget" ? <BudgetStep draft={draft} plan={shown} fault={fault} /> : null}
          {step === "review" ? <Review draft={draft} plan={shown} fault={fault} tags={tags} onTags={setTags} refused={refused} /> : null}
        </fieldset>
        {fault !== null && marked !== step ? (
          <p className={styles.error} role="alert">
            {fault.message}
          </p>
        ) : null}
        <div className={styles.buttons}>
          <Button disabled={place === 0} onClick={() => setStep(STEPS[place - 1]?.[0] ?? step)}>
            Back
          </Button>
          {step === "review" ? (
            <span>
              {missing.length > 0 ? <span className={styles.soft}>It still needs {missing.join(" and ")}. </span> : null}
              <Button kind="primary" disabled={made instanceof Error || missing.length > 0 || create.isPending || fault !== null} onClick={submit}>
                {create.isPending ? "Creating …" : file.component === undefined ? "Create the study" : "Start the study"}
              </Button>
            </span>
          ) : (
            <Button kind="primary" onClick={() => setStep(STEPS[place + 1]?.[0] ?? step)}>
              Next: {STEPS[place + 1]?.[1]}
            </Button>
          )}
        </div>
      </div>
      <YamlEditor draft={draft} />
    </div>
  );
}

// A form that is opened again makes other requests.
const begun = Date.now();
const EMPTY: StudySpec = { space: { parameters: [] }, objectives: [] };

/** Whether there is enough of it for the service to say something about. */
function isWhole(spec: StudySpec): boolean {
  return spec.space.parameters.length > 0 && spec.objectives.length > 0;
}

function specOf({ file, unreadable }: Draft, space: readonly Parameter[] | undefined): StudySpec | FileFault {
  if (unreadable !== null) return unreadable;
  try {
    return toSpec(file, space);
  } catch (error) {
    if (error instanceof FileFault) return error;
    throw error;
  }
}

function tunedOf({ file }: Draft, space: readonly Parameter[] | undefined): Parameter[] {
  try {
    return parametersOf(file, space ?? []);
  } catch (error) {
    if (error instanceof FileFault) return [];
    throw error;
  }
}
