import { plural, t } from "@lingui/core/macro";
import { useEffect, useId, useRef, useState, type ReactNode } from "react";
import { CopyButton } from "@/components/Button";
import { Card } from "@/components/Card";
import { ConfigurationTable } from "@/components/Table";
import type { Analysis, Configuration, Measured, Objective, StudySpec } from "@/lib/api/client";
import { formatMetric, formatNumber, unitOf } from "@/lib/format";
import { unitsOf } from "@/lib/space";
import { pointOf } from "./points";
import styles from "./BestConfiguration.module.css";

// With more rows than this, only the differences from the default are shown at first.
const MANY = 12;

interface Props {
  spec: StudySpec;
  analysis: Analysis;
  /** The number of the first trial of the chosen member of the Pareto front; undefined: the one to which the gains belong. */
  point?: number | undefined;
  /** Called when the user chooses another member. Without it, none can be chosen. */
  onPoint?: ((first: number) => void) | undefined;
  /** Buttons for the chosen one. */
  actions?: (best: Measured) => ReactNode;
}

/** Compare the best configuration with the default; with several objectives, one of the Pareto set at a time. */
export function BestConfiguration({ spec, analysis, point, onPoint, actions }: Props) {
  const best = pointOf(analysis, point);
  const title = analysis.best.length > 1 ? t`Best trade-offs (${formatNumber(analysis.best.length)} on the front)` : t`Best configuration`;
  if (best === undefined) {
    return (
      <Card title={title}>
        <p className={styles.none}>{t`The best configuration appears after the first completed trial.`}</p>
      </Card>
    );
  }
  return (
    <Card
      title={title}
      flush
      actions={
        <>
          {actions?.(best)}
          <CopyButton label={t`Copy as JSON`} text={JSON.stringify(best.params, null, 2)} />
        </>
      }
    >
      {analysis.best.length > 1 && onPoint !== undefined ? <Front objectives={spec.objectives} front={analysis.best} chosen={best} choose={onPoint} /> : null}
      <Comparison spec={spec} best={best} analysis={analysis} />
    </Card>
  );
}

function Front({ objectives, front, chosen, choose }: { objectives: Objective[]; front: Measured[]; chosen: Measured; choose: (first: number) => void }) {
  const group = useId();
  const row = useRef<HTMLLabelElement>(null);
  const list = useRef<HTMLFieldSetElement>(null);
  // The chosen one may have been chosen elsewhere, on the plot or by the address. The page itself does not scroll.
  useEffect(() => {
    const [frame, one] = [list.current, row.current];
    if (frame !== null && one !== null) frame.scrollTop = one.offsetTop - frame.offsetTop - frame.clientHeight / 2;
  }, [chosen]);
  return (
    <fieldset ref={list} className={styles.front}>
      <legend>{t`Choose a configuration on the Pareto front:`}</legend>
      {front.map((measured) => (
        <label key={measured.numbers[0]} ref={measured === chosen ? row : undefined} className={styles.member}>
          <input type="radio" name={group} checked={measured === chosen} onChange={() => choose(measured.numbers[0] ?? 0)} />
          <span className={styles.number}>#{measured.numbers[0]}</span>
          {objectives.map((objective) => (
            <span key={objective.metric}>
              {objective.metric} <b>{formatMetric(measured.metrics[objective.metric] ?? NaN, unitOf(objective))}</b>
            </span>
          ))}
        </label>
      ))}
    </fieldset>
  );
}

// More numbers of trials than this are shortened.
const MOST_NUMBERS = 8;

function numberList(numbers: readonly number[]): string {
  const shown = numbers.slice(0, MOST_NUMBERS).join(", ");
  return numbers.length > MOST_NUMBERS ? t`${shown} and ${formatNumber(numbers.length - MOST_NUMBERS)} more` : shown;
}

function Comparison({ spec, best, analysis }: { spec: StudySpec; best: Measured; analysis: Analysis }) {
  const [all, setAll] = useState(false);
  const standard = analysis.default_params;
  const names = namesOf(spec, best.params, standard);
  const differing = names.filter((name) => best.params[name] !== standard[name]);
  const many = names.length > MANY && differing.length < names.length;
  return (
    <>
      <ConfigurationTable names={many && !all ? differing : names} columns={[{ title: t`Best`, values: best.params }]} standard={standard} units={unitsOf(spec.space.parameters)} />
      <p className={styles.note}>
        {best.numbers.length === 1 ? t`Trial ${numberList(best.numbers)}.` : t`Trials ${numberList(best.numbers)}.`}{" "}
        {t`${formatNumber(differing.length)} of ${plural(names.length, { one: "# parameter", other: "# parameters" })} differ from the default.`}{" "}
        {many ? (
          <button type="button" className={styles.link} onClick={() => setAll(!all)}>
            {all ? t`Show only differences` : t`Show all ${formatNumber(names.length)}`}
          </button>
        ) : null}
      </p>
    </>
  );
}

/** Return the parameters that have a value in any of these configurations, in the order of the space. */
export function namesOf(spec: StudySpec, ...configurations: Configuration[]): string[] {
  return spec.space.parameters.map(({ name }) => name).filter((name) => configurations.some((configuration) => name in configuration));
}
