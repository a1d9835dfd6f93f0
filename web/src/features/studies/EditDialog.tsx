import { t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useId, useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { SelectField, TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError, type Parameter, type Study } from "@/lib/api/client";
import { useSettledData } from "@/lib/clock";
import { useEditSpace, wouldCountQuery } from "./api";
import { CHOICES, chosenOf, editOf, EXAMPLE, isFaultOf, type Choice, type Chosen, type Edit } from "./edits";
import { earlierTrialsText } from "@/lib/verdicts";
import styles from "./RangesDialog.module.css";

/** A dialog that adds, removes, fixes and frees parameters of a running study. */
export default function EditDialog({ study, open, onOpenChange }: { study: Study; open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Dialog title={t`Parameters of ${study.name}`} open={open} onOpenChange={onOpenChange}>
      <EditForm study={study} onDone={() => onOpenChange(false)} />
    </Dialog>
  );
}

function EditForm({ study: latest, onDone }: { study: Study; onDone: () => void }) {
  // The study when the dialog was opened, so that it does not silently undo changes that others make meanwhile.
  const [study] = useState(latest);
  const [chosen, choose] = useState(() => chosenOf(study));
  const [declarations, declare] = useState("");
  // A second click sends the same request.
  const [request] = useState(() => crypto.randomUUID());
  const id = useId();
  const { edit, unreadable } = read(study, chosen, declarations);
  const changed = Object.keys(edit).length > 0;
  const settled = useSettledData(edit);
  const would = useQuery({ ...wouldCountQuery(study.name, settled), enabled: Object.keys(settled).length > 0 });
  const change = useEditSpace(study.name);
  const error = change.error ?? (changed ? would.error : null);
  const field = error instanceof ApiError ? error.data.field : undefined;
  const { parameters } = study.spec.space;
  const shownAtField = parameters.some(({ name }) => isFaultOf(field, name));
  return (
    <form
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate({ edit, request_id: request }, { onSuccess: onDone });
      }}
    >
      <p>
        {t`Existing trials keep their configurations. Trials with another value of a fixed or removed parameter are left out of what the search learns from. Trials without an added parameter count with its default.`}
      </p>
      <div className={styles.parameters}>
        {parameters.map((parameter) => (
          <Row
            key={parameter.name}
            parameter={parameter}
            chosen={chosen[parameter.name] ?? { choice: "searched", value: "" }}
            error={error !== null && isFaultOf(field, parameter.name) ? error.message : undefined}
            onChoose={(own) => {
              change.reset();
              choose({ ...chosen, [parameter.name]: own });
            }}
          />
        ))}
      </div>
      <div>
        <label htmlFor={id}>{t`Add parameters (YAML)`}</label>
        <textarea
          id={id}
          className={styles.declarations}
          rows={3}
          placeholder={EXAMPLE}
          value={declarations}
          onChange={(event) => {
            change.reset();
            declare(event.target.value);
          }}
        />
        {unreadable ? <p className={styles.fault}>{t`Write a line for each parameter, such as ${EXAMPLE}.`}</p> : null}
      </div>
      <p role="status" className={styles.outside}>
        {changed ? (error === null ? (would.data === undefined ? "" : earlierTrialsText(would.data)) : "") : t`No changes.`}
      </p>
      {error === null || shownAtField ? null : <Problem error={error} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button type="submit" kind="primary" disabled={!changed || unreadable || change.isPending}>
          {t`Save`}
        </Button>
      </DialogActions>
    </form>
  );
}

function read(study: Study, chosen: Record<string, Chosen>, declarations: string): { edit: Edit; unreadable: boolean } {
  try {
    return { edit: editOf(study, chosen, declarations), unreadable: false };
  } catch {
    return { edit: editOf(study, chosen, ""), unreadable: true };
  }
}

interface RowProps {
  parameter: Parameter;
  chosen: Chosen;
  error: string | undefined;
  onChoose: (chosen: Chosen) => void;
}

function Row({ parameter: { name, type }, chosen, error, onChoose }: RowProps) {
  return (
    <div className={styles.parameter} role="group" aria-label={name}>
      <div>
        <b>{name}</b>
        <p className={styles.soft}>{type}</p>
      </div>
      <div className={styles.ends}>
        <SelectField
          label={t`In the search`}
          aria-label={t`${name} in the search`}
          value={chosen.choice}
          onChange={(event) => onChoose({ ...chosen, choice: event.target.value as Choice })}
        >
          {CHOICES.map((choice) => (
            <option key={choice} value={choice}>
              {textOf(choice)}
            </option>
          ))}
        </SelectField>
        {chosen.choice === "searched" ? null : (
          <TextField
            label={t`Value`}
            aria-label={t`Value of ${name}`}
            value={chosen.value}
            error={error}
            onChange={(event) => onChoose({ ...chosen, value: event.target.value })}
          />
        )}
      </div>
    </div>
  );
}

function textOf(choice: Choice): string {
  switch (choice) {
    case "searched":
      return t`Searched`;
    case "fixed":
      return t`Fixed`;
    case "removed":
      return t`Removed`;
  }
}
