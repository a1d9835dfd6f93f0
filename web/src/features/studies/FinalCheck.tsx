import { t } from "@lingui/core/macro";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError, type Study } from "@/lib/api/client";
import { useCheckStudy } from "./api";
import { limitOf } from "./limits";
import styles from "./StudyActions.module.css";

// The settings of a final check that the service uses if a study has none (policies/check.py).
const USUAL_TRIALS = 20;
const USUAL_WIDTH = 0.05;
const USUAL_EFFECTS = 32;

/** A button that runs a final check: of a study that has ended, or of one whose search then ends. */
export function CheckButton({ study, isPrimary }: { study: Study; isPrimary: boolean }) {
  const [shown, show] = useState(false);
  if (study.state === "ABORTED" || study.search_end_reason !== "" && study.state !== "COMPLETED") return null;
  return (
    <Dialog title={t`Final check of ${study.name}`} open={shown} onOpenChange={show} trigger={<Button kind={isPrimary ? "primary" : "plain"}>{t`Run the final check`}</Button>}>
      <CheckForm study={study} onDone={() => show(false)} />
    </Dialog>
  );
}

function CheckForm({ study, onDone }: { study: Study; onDone: () => void }) {
  const { max_trials: trials = USUAL_TRIALS, width = USUAL_WIDTH, effects = USUAL_EFFECTS } = study.spec.final_check ?? {};
  const isSeveral = study.spec.objectives.length > 1;
  const [most, setMost] = useState(String(trials));
  const [percent, setPercent] = useState(String(100 * width));
  const [further, setFurther] = useState(String(effects));
  // A second click sends the same request.
  const [request] = useState(() => crypto.randomUUID());
  const searching = study.state !== "COMPLETED";
  const check = useCheckStudy(study.name, searching);
  const field = check.error instanceof ApiError ? check.error.data.field : undefined;
  // The question which changes matter has one objective.
  const settings = { max_trials: limitOf(most), width: limitOf(percent, 0.01), effects: isSeveral ? null : limitOf(further) };
  const unreadable = Object.values(settings).some(Number.isNaN);
  const errorOf = (name: keyof typeof settings) =>
    Number.isNaN(settings[name]) ? t`Enter a number.` : field === `final_check.${name}` || field === name ? check.error?.message : undefined;
  return (
    <form
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        // The check may begin, which removes this form, before the answer is here; the form would then come back after the check.
        if (!unreadable) void check.mutateAsync({ ...settings, request_id: request }).then(onDone, () => null);
      }}
    >
      <p>
        {isSeveral
          ? t`Members of the Pareto front and the default are measured alternately. The number of trials decides how many members. Only these measurements count for the new verdict, which replaces the present one when the check is over.`
          : t`The best configuration and the default are measured alternately. Only these measurements count for the new verdict, which replaces the present one when the check is over.`}
      </p>
      {searching ? <p>{t`The search ends first. Its running trials may finish, and the check begins after them. The search can continue after the check.`}</p> : null}
      {study.spec.execution ? null : <p>{t`Your own script measures the trials of this study. The check waits until it asks for them, so start it again if it has ended.`}</p>}
      <TextField inputMode="numeric" label={t`Trials at most`} value={most} error={errorOf("max_trials")} onChange={({ target }) => setMost(target.value)} />
      <TextField
        inputMode="decimal"
        label={t`Width of the interval (%)`}
        hint={t`The check ends earlier if the interval of the gain is so narrow.`}
        value={percent}
        error={errorOf("width")}
        onChange={({ target }) => setPercent(target.value)}
      />
      {isSeveral ? null : (
        <TextField
          inputMode="numeric"
          label={t`Trials to find which changes matter`}
          hint={t`If a gain is proven, at most so many trials follow. Enter 0, or a number from 16.`}
          value={further}
          error={errorOf("effects")}
          onChange={({ target }) => setFurther(target.value)}
        />
      )}
      {check.error === null || errorOf("max_trials") !== undefined || errorOf("width") !== undefined || errorOf("effects") !== undefined ? null : <Problem error={check.error} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button type="submit" kind="primary" disabled={check.isPending || unreadable}>
          {t`Start check`}
        </Button>
      </DialogActions>
    </form>
  );
}
