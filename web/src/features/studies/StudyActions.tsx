import { plural, t } from "@lingui/core/macro";
import { useEffect, useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError, type Study } from "@/lib/api/client";
import { useDeleteStudy, useExtendBudget, useUpdateState } from "./api";
import { writtenTimes } from "@/lib/format";
import { limitOf } from "./edits";
import type { Connection } from "./feed";
import { EditButton } from "./EditDialog";
import { RangesButton } from "./RangesDialog";
import { StopDialog } from "./StopDialog";
import styles from "./StudyActions.module.css";

/** The actions that the state of a study allows. */
export function StudyActions({ study, connection, onDeleted }: { study: Study; connection: Connection; onDeleted: () => void }) {
  const update = useUpdateState(study.name);
  const { reset } = update;
  // An error from before a reconnection is out of date.
  useEffect(() => {
    if (connection === "live") reset();
  }, [connection, reset]);
  const open = study.state === "ACTIVE" || study.state === "PAUSED";
  return (
    <div className={styles.actions}>
      {study.state === "ACTIVE" ? (
        <Button disabled={update.isPending} onClick={() => update.mutate("PAUSED")}>
          {t`Pause`}
        </Button>
      ) : null}
      {study.state === "PAUSED" ? (
        <Button kind="primary" disabled={update.isPending} onClick={() => update.mutate("ACTIVE")}>
          {t`Resume`}
        </Button>
      ) : null}
      {open && study.search_end_reason === "" ? (
        <>
          <BudgetButton study={study} />
          <RangesButton study={study} />
          <EditButton study={study} />
        </>
      ) : null}
      {study.state === "COMPLETED" && !study.exhausted ? <BudgetButton study={study} /> : null}
      {open ? <StopButton name={study.name} /> : <DeleteButton study={study} onDeleted={onDeleted} />}
      {update.error === null ? null : (
        <div className={styles.problem}>
          <Problem error={update.error} />
        </div>
      )}
    </div>
  );
}

function StopButton({ name }: { name: string }) {
  const [shown, show] = useState(false);
  return <StopDialog name={name} open={shown} onOpenChange={show} trigger={<Button kind="danger">{t`Stop`}</Button>} />;
}

/** Change the budget of a search, or continue a search that has ended. */
function BudgetButton({ study }: { study: Study }) {
  const [shown, show] = useState(false);
  const ended = study.state === "COMPLETED";
  const title = ended ? t`Continue ${study.name}` : t`Budget of ${study.name}`;
  return (
    <Dialog title={title} open={shown} onOpenChange={show} trigger={<Button>{ended ? t`Continue` : t`Budget`}</Button>}>
      <BudgetForm study={study} ended={ended} onDone={() => show(false)} />
    </Dialog>
  );
}

function BudgetForm({ study, ended, onDone }: { study: Study; ended: boolean; onDone: () => void }) {
  const { max_trials: trials, max_seconds: seconds, max_node_hours: used } = study.spec.budget ?? {};
  // The budget of an ended search is mostly spent: propose half as much again.
  const [most, setMost] = useState(trials ? String(ended ? Math.ceil(1.5 * trials) : trials) : "");
  const [minutes, setMinutes] = useState(seconds ? String(seconds / 60) : "");
  const [hours, setHours] = useState(used?.toString() ?? "");
  const extend = useExtendBudget(study.name);
  const field = extend.error instanceof ApiError ? extend.error.data.field : undefined;
  // As text: a number field reports "1.5e" as empty, which would remove the limit.
  const limits = { max_trials: limitOf(most), max_seconds: limitOf(minutes, 60), max_node_hours: limitOf(hours) };
  const unreadable = Object.values(limits).some(Number.isNaN);
  const concerns = (name: keyof typeof limits) => field === `budget.${name}` || field === name;
  const refusal = (name: keyof typeof limits) => {
    const times = name === "max_seconds" ? writtenTimes(extend.error, { symbol: "", seconds: 60 }) : undefined;
    return times === undefined ? extend.error?.message : t`Minutes: ${times}, or empty.`;
  };
  const numeric = (name: keyof typeof limits, value: string, set: (text: string) => void) => ({
    inputMode: "decimal" as const,
    value,
    error: Number.isNaN(limits[name]) ? t`Enter a number, or leave the field empty.` : concerns(name) ? refusal(name) : undefined,
    onChange: (event: { target: { value: string } }) => {
      extend.reset();
      set(event.target.value);
    },
  });
  return (
    <form
      className={styles.form}
      // The service's error, shown at the field, says what is allowed.
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (!unreadable) extend.mutate(limits, { onSuccess: onDone });
      }}
    >
      <p>{t`Limits for the whole search, from its start. Leave a field empty for no limit.`}</p>
      {ended ? <p>{t`The search continues until the new budget is spent; stopping rules do not end it again. The present verdict stays until a new one is known.`}</p> : null}
      <TextField {...numeric("max_trials", most, setMost)} label={t`Trials`} />
      <TextField {...numeric("max_seconds", minutes, setMinutes)} label={t`Minutes`} />
      <TextField {...numeric("max_node_hours", hours, setHours)} label={t`Node-hours`} />
      {extend.error === null || concerns("max_trials") || concerns("max_seconds") || concerns("max_node_hours") ? null : <Problem error={extend.error} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button type="submit" kind="primary" disabled={extend.isPending || unreadable}>
          {ended ? t`Continue search` : t`Save`}
        </Button>
      </DialogActions>
    </form>
  );
}

function DeleteButton({ study, onDeleted }: { study: Study; onDeleted: () => void }) {
  const [shown, show] = useState(false);
  const remove = useDeleteStudy(study.name, onDeleted);
  return (
    <Dialog title={t`Delete ${study.name}?`} open={shown} onOpenChange={show} trigger={<Button kind="danger">{t`Delete`}</Button>}>
      <p>{plural(study.trial_count, { one: "This permanently deletes the study and its # trial.", other: "This permanently deletes the study and its # trials." })}</p>
      {remove.error === null ? null : <Problem error={remove.error} />}
      <DialogActions>
        <Button onClick={() => show(false)}>{t`Cancel`}</Button>
        <Button kind="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          {t`Delete`}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
