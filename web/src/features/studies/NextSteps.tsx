import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import type { Analysis, Measured, Study } from "@/lib/api/client";
import { nextStep, type NextStep } from "@/lib/nextStep";
import { isSame } from "@/lib/space";
import { BudgetButton } from "./BudgetDialog";
import { CheckButton } from "./FinalCheck";
import styles from "./Gain.module.css";

interface Props {
  study: Study;
  analysis: Analysis;
  mayTune: boolean;
  /** The configuration that is shown: the best one, or a chosen member of the Pareto front. */
  shown: Measured;
  /** The button that takes the shown configuration away; `isPrimary`: it is the next step. */
  use: (isPrimary: boolean) => ReactNode;
}

/** Say what to do next with the result, with one primary button. There is nothing to use where the default is the best. */
export function NextSteps({ study, analysis, mayTune, shown, use }: Props) {
  const step = nextStep(analysis, study);
  const isUsed = step === "use" || step === "choose";
  const isDefault = isSame(shown.params, analysis.default_params);
  // A check of the default alone would compare it with itself.
  const isChecked = mayTune && !(isDefault && analysis.best.length === 1 && !analysis.verdict?.compared);
  const text = isDefault ? defaultText(step, study, analysis) : textOf(step, study, analysis);
  return (
    <div className={styles.next}>
      {text === "" ? null : <p>{text}</p>}
      <div className={styles.nextButtons}>
        {step === "search" && mayTune && study.state === "COMPLETED" && !study.exhausted ? <BudgetButton study={study} label={t`Search further`} kind="primary" /> : null}
        {isChecked && !isUsed ? <CheckButton study={study} isPrimary={step === "check" || step === "repeat"} /> : null}
        {isDefault ? null : use(isUsed)}
        {isChecked && isUsed ? <CheckButton study={study} isPrimary={false} /> : null}
      </div>
    </div>
  );
}

/** Say what follows when the configuration that is shown is the default. */
function defaultText(step: NextStep, study: Study, analysis: Analysis): string {
  if (analysis.best.length > 1) return t`This point of the front is the default, so there is nothing to change. Choose another point to see what it gains.`;
  switch (step) {
    case "wait":
      return t`The search goes on. So far the default is recommended: no configuration is known to be better.`;
    case "repeat":
      return t`The default is recommended for now. ${textOf(step, study, analysis)}`;
    default:
      // With a comparison, the verdict above has said that the default is recommended.
      if (analysis.verdict?.compared) return textOf("search", study, analysis);
      return t`The default is recommended: keep it. ${triedText(study, analysis)} A larger budget, wider ranges or other parameters may find a better one.`;
  }
}

function triedText(study: Study, analysis: Analysis): string {
  const changed = plural(study.spec.space.parameters.length, { one: "# parameter", other: "# parameters" });
  const tried = plural(analysis.configurations, { one: `# configuration of ${changed} was tried`, other: `# configurations of ${changed} were tried` });
  return t`${tried}, and none is known to be better than the default.`;
}

/** Return the sentence for a step; empty for none. */
function textOf(step: NextStep, study: Study, analysis: Analysis): string {
  switch (step) {
    case "none":
      return "";
    case "use":
      return t`The gain is proven. Use this configuration.`;
    case "choose":
      return t`Gains are proven. Choose a configuration on the front and use it.`;
    case "check":
      return t`The gain is not proven yet. A final check measures the best configuration and the default alternately, and proves or refutes it.`;
    case "repeat":
      return t`Other processes have disturbed the timings. Repeat the final check on a quiet machine, or at a quiet time.`;
    case "search":
      return t`${triedText(study, analysis)} A larger budget, wider ranges or other parameters may find one; otherwise keep the default.`;
    default:
      return t`The search goes on. You can use the best configuration so far, or end the search with a final check.`;
  }
}
