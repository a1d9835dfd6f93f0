import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";

const DECISIONS: Record<string, MessageDescriptor> = {
  keep: msg`gain proven`,
  harm: msg`loss found`,
  futile: msg`no gain worth keeping`,
  most: msg`undecided after all pairs`,
  guard: msg`guard broken`,
  budget: msg`budget used up`,
  window: msg`window closed`,
  stopped: msg`stopped`,
  carry_over: msg`earlier settings acted on`,
};

/** Name the decision of a live trial. */
export function decisionText(decision: string): string {
  const known = DECISIONS[decision];
  return known === undefined ? decision : i18n._(known);
}
