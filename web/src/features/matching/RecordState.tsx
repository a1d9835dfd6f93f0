import { i18n } from "@lingui/core";
import { msg, t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Badge } from "@/components/Badge";
import { Ago, On } from "@/components/Time";
import type { MatchingRecord } from "@/lib/api/client";
import { reasonText, withoutFirst } from "@/lib/reasons";

/** The states of a record, as they are shown. */
const RECORD_STATES = { ACTIVE: msg`active`, WITHDRAWN: msg`withdrawn` };

/** Return the cause of a withdrawal in a few words; what a person has said in full. */
export function causeText({ cause, state_reason, state_reason_data }: Pick<MatchingRecord, "cause" | "state_reason" | "state_reason_data">): string {
  const texts = { verdict: t`the gain is no longer proven`, deletion: t`the study was deleted`, jobs: t`its jobs were slower`, person: reasonText(state_reason, state_reason_data), approval: t`an administrator has to approve it`, "": "" };
  return texts[cause];
}

/** Say why an administrator has to approve a record before any job gets its settings. The reason of its state has the sentences with their codes. */
export function withheldText({ withheld, cause, state_reason_data }: Pick<MatchingRecord, "withheld" | "cause" | "state_reason_data">): string {
  // The first sentence says that an approval is needed.
  return reasonText(withheld, cause === "approval" ? withoutFirst(state_reason_data) : null);
}

/** Return whether only jobs of the record's own user get the settings, because no administrator has approved it. */
export function isForUser({ state, audience }: Pick<MatchingRecord, "state" | "audience">): boolean {
  return state === "ACTIVE" && audience === "user";
}

export function RecordState({ record: { state, cause, audience, job } }: { record: Pick<MatchingRecord, "state" | "cause" | "audience" | "job"> }) {
  if (isForUser({ state, audience })) return <Badge tone="good">{t`active for ${job.user}`}</Badge>;
  if (cause === "approval") return <Badge tone="warn">{t`needs approval`}</Badge>;
  return <Badge tone={state === "ACTIVE" ? "good" : "warn"}>{i18n._(RECORD_STATES[state])}</Badge>;
}

/** Say since when a record is active, or when and why it was withdrawn. */
export function RecordReason({ record: { state, cause, audience, job, active_since, withdrawn_at, state_reason, state_reason_data } }: { record: MatchingRecord }) {
  const reason = reasonText(state_reason, state_reason_data);
  if (cause === "approval") return <>{t`No job gets these settings yet.`} {reason}</>;
  if (isForUser({ state, audience })) {
    return (
      <Trans>
        Only jobs of {job.user} get these settings, since <On at={active_since} /> (<Ago at={active_since} />). An administrator can approve them for everybody.
      </Trans>
    );
  }
  if (state === "ACTIVE") {
    return (
      <Trans>
        Jobs of this application get these settings since <On at={active_since} /> (<Ago at={active_since} />), where the rules of a submission host allow it.
      </Trans>
    );
  }
  return (
    <>
      {withdrawn_at === null ? (
        t`Withdrawn. No job gets these settings.`
      ) : (
        <Trans>
          Withdrawn on <On at={withdrawn_at} /> (<Ago at={withdrawn_at} />). No job gets these settings.
        </Trans>
      )}{" "}
      {reason}
    </>
  );
}
