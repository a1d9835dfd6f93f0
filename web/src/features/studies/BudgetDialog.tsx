import { t } from "@lingui/core/macro";
import { useState, type ReactNode } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError, type Study } from "@/lib/api/client";
import { writtenTimes } from "@/lib/format";
import { useExtendBudget } from "./api";
import { limitOf } from "./limits";
import styles from "./StudyActions.module.css";

/** A button that continues a search which has ended, or changes the budget of one that goes on. */
export function BudgetButton({ study, label, kind = "plain" }: { study: Study; label: string; kind?: "plain" | "primary" }) {
  const [shown, show] = useState(false);
  return <BudgetDialog study={study} open={shown} onOpenChange={show} trigger={<Button kind={kind}>{label}</Button>} />;
}

interface Props {
  study: Study;
  open: boolean;
  onOpenChange: (open: boolean) => void;
  trigger?: ReactNode;
}

/** Change the budget of a search, or continue a search that has ended. */
export function BudgetDialog({ study, open, onOpenChange, trigger }: Props) {
  const ended = study.state === "COMPLETED";
  return (
    <Dialog title={ended ? t`Continue ${study.name}` : t`Budget of ${study.name}`} open={open} onOpenChange={onOpenChange} trigger={trigger}>
      <BudgetForm study={study} ended={ended} onDone={() => onOpenChange(false)} />
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
