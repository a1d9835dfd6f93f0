import { plural, t } from "@lingui/core/macro";
import type { ReactNode } from "react";
import type { Analysis, Study } from "@/lib/api/client";
import { nextStep, type NextStep } from "@/lib/nextStep";
import { BudgetButton } from "./BudgetDialog";
import { CheckButton } from "./FinalCheck";
import styles from "./Gain.module.css";

interface Props {
  study: Study;
  analysis: Analysis;
  mayTune: boolean;
  /** The button that takes the shown configuration away; `isPrimary`: it is the next step. */
  use: (isPrimary: boolean) => ReactNode;
}

/** Say what to do next with the result, with one primary button. */
export function NextSteps({ study, analysis, mayTune, use }: Props) {
  const step = nextStep(analysis, study);
  if (analysis.best.length === 0) return null;
  const isUsed = step === "use" || step === "choose";
  return (
    <div className={styles.next}>
      {step === "none" ? null : <p>{textOf(step, study, analysis)}</p>}
      <div className={styles.nextButtons}>
        {step === "search" && mayTune && study.state === "COMPLETED" && !study.exhausted ? <BudgetButton study={study} label={t`Search further`} kind="primary" /> : null}
        {mayTune && !isUsed ? <CheckButton study={study} isPrimary={step === "check" || step === "repeat"} /> : null}
        {use(isUsed)}
        {mayTune && isUsed ? <CheckButton study={study} isPrimary={false} /> : null}
      </div>
    </div>
  );
}

function textOf(step: NextStep, study: Study, analysis: Analysis): string {
  switch (step) {
    case "use":
      return t`The gain is proven. Use this configuration.`;
    case "choose":
      return t`Gains are proven. Choose a configuration on the front and use it.`;
    case "check":
      return t`The gain is not proven yet. A final check measures the best configuration and the default alternately, and proves or refutes it.`;
    case "repeat":
      return t`Other processes have disturbed the timings. Repeat the final check on a quiet machine, or at a quiet time.`;
    case "search": {
      const tried = plural(analysis.configurations, { one: "# configuration was tried", other: "# configurations were tried" });
      const changed = plural(study.spec.space.parameters.length, { one: "# parameter", other: "# parameters" });
      return t`${tried} of ${changed}, and none is known to be better than the default. A larger budget, wider ranges or other parameters may find one; otherwise keep the default.`;
    }
    default:
      return t`The search goes on. You can use the best configuration so far, or end the search with a final check.`;
  }
}
