import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError, type MatchingRecord } from "@/lib/api/client";
import { useChangeRecord } from "./api";
import styles from "./matching.module.css";
import { withheldText } from "./RecordState";

type Step = "withdraw" | "restore" | "approve";

/** Return what is to be done with a record: an active one is withdrawn, one that is withheld needs an approval. */
export function stepOf({ state, cause, withheld }: MatchingRecord): Step {
  if (state === "ACTIVE") return "withdraw";
  return cause === "approval" || withheld !== "" ? "approve" : "restore";
}

interface Props {
  record: MatchingRecord;
  step: Step;
}

/** A button with a dialog that withdraws, restores or approves a record. */
export function ChangeRecord({ record, step }: Props) {
  const [open, setOpen] = useState(false);
  const isActive = step === "withdraw";
  const isApproval = step === "approve";
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={isActive ? t`Withdraw record ${record.id}?` : isApproval ? t`Approve record ${record.id}?` : t`Restore record ${record.id}?`}
      trigger={<Button kind={isActive ? "danger" : "plain"}>{isActive ? t`Withdraw …` : isApproval ? t`Approve …` : t`Restore …`}</Button>}
    >
      <Fields record={record} step={step} onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Fields({ record, step, onDone }: Props & { onDone: () => void }) {
  const [reason, setReason] = useState("");
  const change = useChangeRecord(record.id);
  const isActive = step === "withdraw";
  const isApproval = step === "approve";
  const isAtReason = change.error instanceof ApiError && change.error.data.field === "reason";
  return (
    <form
      className={styles.form}
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate({ state: isActive ? "WITHDRAWN" : "ACTIVE", reason }, { onSuccess: onDone });
      }}
    >
      <p>
        {isActive
          ? t`No further job gets these settings. Jobs that run already keep them.`
          : isApproval
            ? record.withheld === ""
              ? t`Jobs of everybody that resemble the tuned one get these settings.`
              : t`Jobs of everybody that resemble the tuned one get these settings, although: ${withheldText(record)}`
            : t`Jobs match the record again. Only jobs that are submitted from now on count for or against it.`}
      </p>
      <TextField
        label={t`Reason, for others to read`}
        value={reason}
        error={isAtReason ? change.error?.message : undefined}
        onChange={(event) => setReason(event.target.value)}
      />
      {change.error === null || isAtReason ? null : <Problem error={change.error} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button type="submit" kind={isActive ? "danger" : "primary"} disabled={change.isPending}>
          {isActive ? t`Withdraw record` : isApproval ? t`Approve record` : t`Restore record`}
        </Button>
      </DialogActions>
    </form>
  );
}
