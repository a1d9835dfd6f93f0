import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useCallback, useId, useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { ApiError, type Component, type Parameter, type StudySpec } from "@/lib/api/client";
import { useSettled, useThrottled } from "@/lib/clock";
import { formatList } from "@/lib/format";
import { methodsQuery, nameQuery, planQuery, useCreateStudy } from "./api";
import { BudgetStep } from "./BudgetStep";
import { EarlierStudies } from "./EarlierStudies";
import { Faults, useFields } from "./FaultAt";
import { faultOf, stepOf, type Fault, type Step } from "./faults";
import { Goals } from "./Goals";
import { MethodStep } from "./MethodStep";
import styles from "./planning.module.css";
import { Review } from "./Review";
import { Space } from "./Space";
import { FileFault, parametersOf, toSpec } from "./studyFile";
import type { Draft } from "./useDraft";
import { textOf } from "@/lib/values";
import { What } from "./What";
import { YamlEditor } from "./YamlEditor";

interface Props {
  draft: Draft;
  /** What it has at first. */
  tags: readonly string[];
  components: readonly Component[];
  /** The chosen component's parameters and metrics; undefined while they are not known yet. */
  space: readonly Parameter[] | undefined;
  metrics: readonly string[];
  onComponent: (name: string) => void;
  onCreated: (name: string) => void;
}

const STEPS: readonly [Step, MessageDescriptor][] = [
  ["what", msg`What`],
  ["space", msg`Parameters`],
  ["goals", msg`Objectives`],
  ["method", msg`Method`],
  ["budget", msg`Budget`],
  ["review", msg`Review`],
];
const NOT_ALL = [msg`a name`, msg`parameters`, msg`objectives`];

/** A new study, step by step, and beside it the same as a file. */
export function StudyForm({ draft, tags: firstTags, components, space, metrics, onComponent, onCreated }: Props) {
  const [step, setStep] = useState<Step>("what");
  const [tags, setTags] = useState(() => firstTags.join(", "));
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
  // What was not answered may have been created: then its own name is taken.
  const unanswered = sent === draft.text && create.error !== null && !isRefusal(create.error);
  const faults = useFaults(
    useName(unanswered || (sent === draft.text && create.isPending) ? "" : textOf(file.name)),
    refused,
    useCallback((error: Error) => faultOf(error, parameters, file), [parameters, file]),
  );
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
          // What was refused was not created: the next one is another request.
          if (isRefusal(error)) setTries(tries + 1);
          setStep(stepOf(faultOf(error, parameters, file).field));
        },
      },
    );
  }
  const [told, elsewhere] = useFields(faults);
  return (
    <div className={styles.layout}>
      <div className={styles.form}>
        <nav aria-label={t`Steps`}>
          <ol className={styles.steps}>
            {STEPS.map(([name, text]) => {
              const fault = faults.find(({ field }) => stepOf(field) === name);
              return (
                <li key={name}>
                  <button type="button" aria-current={name === step ? "step" : undefined} onClick={() => setStep(name)}>
                    {i18n._(text)}
                    {fault === undefined ? null : (
                      <span className={styles.mark} title={fault.message}>
                        !<span className="visually-hidden"> {t`has a fault`}</span>
                      </span>
                    )}
                  </button>
                </li>
              );
            })}
          </ol>
        </nav>
        <Faults value={told}>
          <fieldset className={styles.form} disabled={unreadable !== null} onChange={() => create.reset()}>
            <legend className="visually-hidden">{titleOf(STEPS[place])}</legend>
            {step === "what" ? (
              <>
                <What draft={draft} components={components} agents={shown?.agents} onComponent={onComponent} />
                <EarlierStudies draft={draft} plan={shown} />
              </>
            ) : null}
            {step === "space" ? <Space draft={draft} space={space ?? []} plan={shown} /> : null}
            {step === "goals" ? <Goals draft={draft} metrics={metrics} /> : null}
            {step === "method" && methods !== undefined ? <MethodStep draft={draft} methods={methods} plan={shown} /> : null}
            {step === "budget" ? <BudgetStep draft={draft} plan={shown} /> : null}
            {step === "review" ? <Review draft={draft} plan={shown} tags={tags} onTags={setTags} /> : null}
          </fieldset>
        </Faults>
        {/* Not every field that can be wrong stands in the form: a parameter that there is none of, one that a filter hides, one of another step. */}
        {elsewhere.map(({ message }) => (
          <p key={message} className={styles.error} role="alert">
            {message}
          </p>
        ))}
        <div className={styles.buttons}>
          <Button disabled={place === 0} onClick={() => setStep(STEPS[place - 1]?.[0] ?? step)}>
            {t`Back`}
          </Button>
          {step === "review" ? (
            <span>
              {missing.length > 0 ? <span className={styles.soft}>{t`It still needs ${formatList(missing.map((text) => i18n._(text)), "conjunction")}.`} </span> : null}
              <Button kind="primary" disabled={made instanceof Error || missing.length > 0 || create.isPending || (faults.length > 0 && !unanswered)} onClick={submit}>
                {create.isPending ? t`Creating …` : file.component === undefined ? t`Create the study` : t`Start the study`}
              </Button>
            </span>
          ) : (
            <Button kind="primary" onClick={() => setStep(STEPS[place + 1]?.[0] ?? step)}>
              {t`Next: ${titleOf(STEPS[place + 1])}`}
            </Button>
          )}
        </div>
      </div>
      <YamlEditor draft={draft} />
    </div>
  );
}

function isRefusal(error: Error): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500;
}

/** What is wrong with the name of the draft; judged when it has been typed, and told only while it is that. */
function useName(name: string): Error | null {
  const typed = useSettled(name, 400);
  const { error } = useQuery({ ...nameQuery(typed), enabled: typed !== "" });
  // Whether it is a good one remains open where nobody answers; the start asks again.
  const judged = error instanceof ApiError && (error.code === "study_exists" || error.data.field === "name");
  return judged && typed === name ? error : null;
}

/** What is wrong, each once. */
function useFaults(name: Error | null, refused: Error | null, faultOf: (error: Error) => Fault): readonly Fault[] {
  return useMemo(() => {
    const faults = [name, refused].filter((error) => error !== null).map(faultOf);
    return faults.filter(({ message }, place) => faults.findIndex((other) => other.message === message) === place);
  }, [name, refused, faultOf]);
}

function titleOf(step: (typeof STEPS)[number] | undefined): string {
  return step === undefined ? "" : i18n._(step[1]);
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
