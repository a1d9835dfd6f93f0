import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Badge } from "@/components/Badge";
import type { MatchingRecord } from "@/lib/api/client";

/** The states of a record, as they are shown. */
const RECORD_STATES = { ACTIVE: msg`active`, WITHDRAWN: msg`withdrawn` };

/** Return the cause of a withdrawal in a few words; what a person has said in full. */
export function causeText({ cause, state_reason }: Pick<MatchingRecord, "cause" | "state_reason">): string {
  const texts = { verdict: t`the gain is no longer proven`, deletion: t`the study was deleted`, jobs: t`its jobs were slower`, person: state_reason, "": "" };
  return texts[cause];
}

export function RecordState({ state }: Pick<MatchingRecord, "state">) {
  return <Badge tone={state === "ACTIVE" ? "good" : "warn"}>{i18n._(RECORD_STATES[state])}</Badge>;
}
