import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useId, useMemo, useState } from "react";
import { Button } from "@/components/Button";
import { ApiError, type Component, type Parameter } from "@/lib/api/client";
import { useSettled, useThrottled } from "@/lib/clock";
import { formatList } from "@/lib/format";
import { methodsQuery, nameQuery, planQuery, useCreateStudy } from "./api";
import { BudgetStep } from "./BudgetStep";
import { EarlierStudies } from "./EarlierStudies";
import { Faults, Meant, useFields } from "./FaultAt";
import { faultOf, stepOf, type Fault, type Step } from "./faults";
import { Goals } from "./Goals";
import { MethodStep } from "./MethodStep";
import styles from "./planning.module.css";
import { Review } from "./Review";
import { Space } from "./Space";
import { StudyFileEditor } from "./StudyFileEditor";
import { edit, isObject, type StudyFile } from "./studyFile";
import type { Draft } from "./useDraft";
import { textOf } from "@/lib/values";
import { What } from "./What";

interface Props {
  draft: Draft;
  /** The tags, separated by commas. */
  tags: string;
  onTags: (tags: string) => void;
  step: Step;
  onStep: (step: Step) => void;
  components: readonly Component[];
  /** The parameters and metrics of the chosen component; undefined while they are loading. */
  space: readonly Parameter[] | undefined;
  metrics: readonly string[];
  onComponent: (name: string) => void;
  onCreated: (name: string) => void;
}

const STEPS: readonly [Step, MessageDescriptor][] = [
  ["what", msg`Component`],
  ["space", msg`Parameters`],
  ["goals", msg`Objectives`],
  ["method", msg`Method`],
  ["budget", msg`Budget`],
  ["review", msg`Review`],
];
const LACKING: readonly [keyof Lacking, MessageDescriptor][] = [
  ["name", msg`a name`],
  ["parameters", msg`parameters`],
  ["objectives", msg`objectives`],
];

/** The form of a new study in steps, next to its study file. */
export function StudyForm({ draft, tags, onTags, step, onStep, components, space, metrics, onComponent, onCreated }: Props) {
  const request = useId();
  const [tries, setTries] = useState(0);
  const [sent, setSent] = useState("");
  const { file, unreadable } = draft;
  const lacking = useMemo(() => lackingOf(file), [file]);
  // The plan does not depend on the name.
  const named = useMemo(() => (unreadable === null ? edit(draft.text, ["name"], undefined) : null), [draft.text, unreadable]);
  const text = useThrottled(lacking.parameters || lacking.objectives ? null : named, 400);
  const plan = useQuery({ ...planQuery(text ?? ""), enabled: text !== null });
  const { data: methods } = useQuery(methodsQuery);
  const create = useCreateStudy();

  // A change of the draft makes an earlier refusal out of date.
  const rejected = sent === draft.text ? create.error : null;
  const refused = unreadable ?? rejected ?? (text === null ? null : plan.error);
  // Without an answer the study may have been created, and then its name is taken.
  const unanswered = sent === draft.text && create.error !== null && !isRefusal(create.error);
  const faults = useFaults(
    useName(unanswered || (sent === draft.text && create.isPending) ? "" : textOf(file.name)),
    refused,
  );
  const shown = text === null || plan.error !== null ? undefined : plan.data;
  const missing = unreadable === null ? LACKING.filter(([key]) => lacking[key]) : [];
  const place = STEPS.findIndex(([name]) => name === step);

  function submit() {
    setSent(draft.text);
    create.mutate(
      { name: textOf(file.name), file: draft.text, tags: tags.split(",").map((tag) => tag.trim()).filter(Boolean), request_id: `${request}${begun}${tries}` },
      {
        onSuccess: ({ name }) => onCreated(name),
        onError: (error) => {
          // A refused study was not created, so the next attempt is another request.
          if (isRefusal(error)) setTries(tries + 1);
          onStep(stepOf(faultOf(error).field));
        },
      },
    );
  }
  const [context, elsewhere] = useFields(faults);
  const names = useMemo(() => space?.map(({ name }) => name) ?? [], [space]);
  return (
    <div className={styles.layout}>
      <div className={styles.form}>
        <nav aria-label={t`Steps`}>
          <ol className={styles.steps}>
            {STEPS.map(([name, text]) => {
              const fault = faults.find(({ field }) => stepOf(field) === name);
              return (
                <li key={name}>
                  <button type="button" aria-current={name === step ? "step" : undefined} onClick={() => onStep(name)}>
                    {i18n._(text)}
                    {fault === undefined ? null : (
                      <span className={styles.mark} title={fault.message}>
                        !<span className="visually-hidden"> {t`has an error`}</span>
                      </span>
                    )}
                  </button>
                </li>
              );
            })}
          </ol>
        </nav>
        <Faults value={context}>
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
            {step === "review" ? <Review draft={draft} plan={shown} tags={tags} onTags={onTags} /> : null}
          </fieldset>
        </Faults>
        {/* Not every field that can be wrong stands in the form: a parameter that there is none of, one that a filter hides, one of another step. */}
        {elsewhere.map(({ field, message }) => (
          <p key={message} className={styles.error} role="alert">
            {message} <Meant name={unknownParameter(field, space)} names={names} />
          </p>
        ))}
        <div className={styles.buttons}>
          <Button disabled={place === 0} onClick={() => onStep(STEPS[place - 1]?.[0] ?? step)}>
            {t`Back`}
          </Button>
          {step === "review" ? (
            <span>
              {missing.length > 0 ? <span className={styles.soft}>{t`Still required: ${formatList(missing.map(([, what]) => i18n._(what)), "conjunction")}.`} </span> : null}
              <Button kind="primary" disabled={unreadable !== null || missing.length > 0 || create.isPending || (faults.length > 0 && !unanswered)} onClick={submit}>
                {create.isPending ? t`Creating …` : file.component === undefined ? t`Create the study` : t`Start the study`}
              </Button>
            </span>
          ) : (
            <span className={styles.buttons}>
              {place < STEPS.length - 2 ? <Button onClick={() => onStep("review")}>{t`Review now`}</Button> : null}
              <Button kind="primary" onClick={() => onStep(STEPS[place + 1]?.[0] ?? step)}>
                {t`Next: ${titleOf(STEPS[place + 1])}`}
              </Button>
            </span>
          )}
        </div>
      </div>
      <StudyFileEditor draft={draft} faults={faults} methods={methods} parameters={names} />
    </div>
  );
}

/** Return the name of a parameter in the file that the component does not have, from the path of a fault. */
function unknownParameter(field: string, space: readonly Parameter[] | undefined): string {
  const [, name = ""] = /^(?:parameters|ranges)\.([^.[]+)/.exec(field) ?? [];
  return space?.some((parameter) => parameter.name === name) ? "" : name;
}

function isRefusal(error: Error): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status < 500;
}

/** Return the error of the draft's name. The name is checked after the user has paused typing, and the error disappears when it changes. */
function useName(name: string): Error | null {
  const typed = useSettled(name, 400);
  const { error } = useQuery({ ...nameQuery(typed), enabled: typed !== "" });
  // Without an answer the name counts as valid: the creation checks it again.
  const judged = error instanceof ApiError && (error.code === "study_exists" || error.data.field === "name");
  return judged && typed === name ? error : null;
}

/** Return all faults without duplicates. */
function useFaults(name: Error | null, refused: Error | null): readonly Fault[] {
  return useMemo(() => {
    const faults = [name, refused].filter((error) => error !== null).map(faultOf);
    return faults.filter(({ message }, place) => faults.findIndex((other) => other.message === message) === place);
  }, [name, refused]);
}

function titleOf(step: (typeof STEPS)[number] | undefined): string {
  return step === undefined ? "" : i18n._(step[1]);
}

// Makes the request ids of a reloaded form different.
const begun = Date.now();

/** The parts that a draft does not have yet. Without parameters and objectives there is nothing to plan. */
interface Lacking {
  name: boolean;
  parameters: boolean;
  objectives: boolean;
}

function lackingOf({ name, component, parameters, only, objectives }: StudyFile): Lacking {
  const none = (value: unknown) => value === undefined || value === null || (Array.isArray(value) && value.length === 0);
  const noParameter = none(parameters) || (isObject(parameters) && Object.keys(parameters).length === 0);
  return { name: textOf(name) === "", parameters: component === undefined ? noParameter : Array.isArray(only) && none(only), objectives: none(objectives) };
}
