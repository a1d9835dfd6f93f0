import { t } from "@lingui/core/macro";
import { Trans } from "@lingui/react/macro";
import { Ago, On } from "@/components/Time";
import type { MatchingRecord } from "@/lib/api/client";

/** Say since when a record is active, or when and why it was withdrawn. */
export function RecordReason({ record: { state, active_since, withdrawn_at, state_reason } }: { record: MatchingRecord }) {
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
      {state_reason}
    </>
  );
}
