import { useId, useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { Problem } from "@/components/Message";
import { ApiError, type Study } from "@/lib/api/client";
import { useDeleteStudy, useExtendBudget, useUpdateState } from "./api";
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
      {open && study.search_end_reason === "" ? <BudgetButton study={study} /> : null}
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

function BudgetButton({ study }: { study: Study }) {
  const [shown, show] = useState(false);
  return (
    <Dialog title={`Budget of ${study.name}`} open={shown} onOpenChange={show} trigger={<Button>Budget</Button>}>
      <BudgetForm study={study} onDone={() => show(false)} />
    </Dialog>
  );
}

function BudgetForm({ study, onDone }: { study: Study; onDone: () => void }) {
  const { max_trials: trials, max_seconds: seconds } = study.spec.budget ?? {};
  const [most, setMost] = useState(trials?.toString() ?? "");
  const [minutes, setMinutes] = useState(seconds ? String(seconds / 60) : "");
  const extend = useExtendBudget(study.name);
  const field = extend.error instanceof ApiError ? extend.error.data.field : undefined;
  const fault = (name: string) => (field === `budget.${name}` || field === name ? extend.error?.message : undefined);
  return (
    <form
      className={styles.form}
      // The service says what is allowed, beside the field.
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        extend.mutate({ max_trials: most === "" ? null : Number(most), max_seconds: minutes === "" ? null : Number(minutes) * 60 }, { onSuccess: onDone });
      }}
    >
      <p>What the search may spend in all, from its beginning. Empty: no limit.</p>
      <Field label="Trials" value={most} onChange={setMost} min={study.trial_count + 1} step={1} fault={fault("max_trials")} />
      <Field label="Minutes" value={minutes} onChange={setMinutes} min={0} step="any" fault={fault("max_seconds")} />
      {extend.error === null || fault("max_trials") || fault("max_seconds") ? null : <Problem error={extend.error} />}
      <DialogActions>
        <Button onClick={onDone}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={extend.isPending}>
          Change
        </Button>
      </DialogActions>
    </form>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onChange: (value: string) => void;
  min: number;
  step: number | "any";
  fault: string | undefined;
}

function Field({ label, value, onChange, min, step, fault }: FieldProps) {
  const id = useId();
  return (
    <div className={styles.field}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="number"
        min={min}
        step={step}
        value={value}
        aria-invalid={fault !== undefined}
        aria-describedby={fault === undefined ? undefined : `${id}-fault`}
        onChange={(event) => onChange(event.target.value)}
      />
      {fault === undefined ? null : (
        <p id={`${id}-fault`} className={styles.fault}>
          {fault}
        </p>
      )}
    </div>
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
