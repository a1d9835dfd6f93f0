import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError, type MatchingRecord } from "@/lib/api/client";
import { useChangeRecord } from "./api";
import styles from "./matching.module.css";

/** A button with a dialog that withdraws an active record, or restores a withdrawn one. */
export function ChangeRecord({ record }: { record: MatchingRecord }) {
  const [open, setOpen] = useState(false);
  const isActive = record.state === "ACTIVE";
  const isApproval = record.cause === "approval";
  return (
    <Dialog
      open={open}
      onOpenChange={setOpen}
      title={isActive ? t`Withdraw record ${record.id}?` : isApproval ? t`Approve record ${record.id}?` : t`Restore record ${record.id}?`}
      trigger={<Button kind={isActive ? "danger" : "plain"}>{isActive ? t`Withdraw …` : isApproval ? t`Approve …` : t`Restore …`}</Button>}
    >
      <Fields record={record} onDone={() => setOpen(false)} />
    </Dialog>
  );
}

function Fields({ record, onDone }: { record: MatchingRecord; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const change = useChangeRecord(record.id);
  const isActive = record.state === "ACTIVE";
  const isApproval = record.cause === "approval";
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
            ? t`Jobs that resemble the tuned one get these settings, although: ${record.state_reason}`
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
