import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Problem } from "@/components/Message";
import type { Study } from "@/lib/api/client";
import { useDeleteStudy, useUpdateState } from "./api";
import styles from "./StudyActions.module.css";

/** What can be done with a study in its state. */
export function StudyActions({ study, onDeleted }: { study: Study; onDeleted: () => void }) {
  const update = useUpdateState(study.name);
  const open = study.state === "ACTIVE" || study.state === "PAUSED";
  return (
    <div className={styles.actions}>
      {study.state === "ACTIVE" ? (
        <Button disabled={update.isPending} onClick={() => update.mutate("PAUSED")}>
          Pause
        </Button>
      ) : null}
      {study.state === "PAUSED" ? (
        <Button kind="primary" disabled={update.isPending} onClick={() => update.mutate("ACTIVE")}>
          Resume
        </Button>
      ) : null}
      {open ? <StopButton study={study} /> : <DeleteButton study={study} onDeleted={onDeleted} />}
      {update.error === null ? null : <Problem error={update.error} />}
    </div>
  );
}

function StopButton({ study }: { study: Study }) {
  const [shown, show] = useState(false);
  const update = useUpdateState(study.name);
  const running = study.active_count;
  function end(state: "COMPLETED" | "ABORTED") {
    update.mutate(state, { onSuccess: () => show(false) });
  }
  return (
    <Dialog title={`Stop ${study.name}?`} open={shown} onOpenChange={show} trigger={<Button kind="danger">Stop</Button>}>
      <p>A stopped study cannot be started again. Its trials and its best configuration stay.</p>
      {running > 0 ? (
        <p>
          {running === 1 ? "1 trial is" : `${running} trials are`} being measured. <b>Finish</b> lets {running === 1 ? "it" : "them"} end and counts
          the result; <b>Abort</b> ends {running === 1 ? "it" : "them"} now.
        </p>
      ) : null}
      {update.error === null ? null : <Problem error={update.error} />}
      <DialogActions>
        <Button onClick={() => show(false)}>Cancel</Button>
        {running > 0 ? (
          <Button kind="danger" disabled={update.isPending} onClick={() => end("ABORTED")}>
            Abort
          </Button>
        ) : null}
        <Button kind="primary" disabled={update.isPending} onClick={() => end("COMPLETED")}>
          Finish
        </Button>
      </DialogActions>
    </Dialog>
  );
}

function DeleteButton({ study, onDeleted }: { study: Study; onDeleted: () => void }) {
  const [shown, show] = useState(false);
  const remove = useDeleteStudy(study.name, onDeleted);
  return (
    <Dialog title={`Delete ${study.name}?`} open={shown} onOpenChange={show} trigger={<Button kind="danger">Delete</Button>}>
      <p>The study and its {study.trial_count} trials are deleted for good.</p>
      {remove.error === null ? null : <Problem error={remove.error} />}
      <DialogActions>
        <Button onClick={() => show(false)}>Cancel</Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          Delete
        </Button>
      </DialogActions>
    </Dialog>
  );
}
