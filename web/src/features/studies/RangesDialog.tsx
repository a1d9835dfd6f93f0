import { plural, t } from "@lingui/core/macro";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "@/components/Button";
import { Dialog, DialogActions } from "@/components/Dialog";
import { TextField } from "@/components/Field";
import { Problem } from "@/components/Message";
import { ApiError, type Parameter, type Study } from "@/lib/api/client";
import { useSettledData } from "@/lib/clock";
import { formatNumber } from "@/lib/format";
import { outsideQuery, useChangeSpace } from "./api";
import { changedRanges, faultFor, typedOf, whyFixed, type Typed } from "./ranges";
import styles from "./RangesDialog.module.css";

/** With this many parameters or more, there is a search field. */
const MANY = 7;

const FAULTY: readonly (keyof Typed | undefined)[] = [undefined, "min", "max", "values"];

/** A dialog that changes the parameter ranges of a running study. */
export default function RangesDialog({ study, open, onOpenChange }: { study: Study; open: boolean; onOpenChange: (open: boolean) => void }) {
  return (
    <Dialog title={t`Ranges of ${study.name}`} open={open} onOpenChange={onOpenChange}>
      <RangesForm study={study} onDone={() => onOpenChange(false)} />
    </Dialog>
  );
}

function RangesForm({ study, onDone }: { study: Study; onDone: () => void }) {
  // The parameters when the dialog was opened, so that it does not silently undo changes that others make meanwhile.
  const [parameters] = useState(study.spec.space.parameters);
  const [typed, setTyped] = useState<Record<string, Typed>>(() => Object.fromEntries(parameters.map((one) => [one.name, typedOf(one)])));
  const [filter, setFilter] = useState("");
  const ranges = changedRanges(parameters, typed);
  const changed = Object.keys(ranges).length > 0;
  const settled = useSettledData(ranges);
  const outside = useQuery({ ...outsideQuery(study.name, settled), enabled: Object.keys(settled).length > 0 });
  const change = useChangeSpace(study.name);
  const error = change.error ?? (changed ? outside.error : null);
  const field = error instanceof ApiError ? error.data.field : undefined;
  const known = parameters.filter(({ name }) => name.toLowerCase().includes(filter.toLowerCase()));
  const shownAtField = parameters.some(({ name }) => FAULTY.some((key) => faultFor(field, name, key)));

  function type(name: string, own: Typed) {
    change.reset();
    setTyped({ ...typed, [name]: own });
  }
  return (
    <form
      className={styles.form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(ranges, { onSuccess: onDone });
      }}
    >
      <p>
        {t`Existing trials keep their values. Trials outside the new ranges stay in the history, but the search neither learns from them nor recommends them. The default configuration must lie inside the new ranges.`}
      </p>
      {parameters.length >= MANY ? (
        <TextField
          label={t`Find a parameter`}
          type="search"
          bare
          placeholder={t`Find a parameter …`}
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
        />
      ) : null}
      <div className={styles.parameters}>
        {known.map((parameter) => (
          <Row
            key={parameter.name}
            parameter={parameter}
            fixed={whyFixed(parameter, parameters)}
            typed={typed[parameter.name] ?? typedOf(parameter)}
            onType={(own) => type(parameter.name, own)}
            fault={(key) => (error !== null && faultFor(field, parameter.name, key) ? error.message : undefined)}
          />
        ))}
      </div>
      <p role="status" className={styles.outside}>
        {changed ? (error === null && outside.data !== undefined ? describe(outside.data, study) : "") : t`No changes.`}
      </p>
      {error === null || shownAtField ? null : <Problem error={error} />}
      <DialogActions>
        <Button onClick={onDone}>{t`Cancel`}</Button>
        <Button type="submit" kind="primary" disabled={!changed || change.isPending}>
          {t`Save`}
        </Button>
      </DialogActions>
    </form>
  );
}

interface RowProps {
  parameter: Parameter;
  fixed: string | null;
  typed: Typed;
  onType: (typed: Typed) => void;
  fault: (key?: keyof Typed) => string | undefined;
}

function Row({ parameter, fixed, typed, onType, fault }: RowProps) {
  const field = (key: keyof Typed, label: string) => (
    <TextField
      label={label}
      value={typed[key]}
      error={fault(key)}
      aria-label={t`${label} of ${parameter.name}`}
      inputMode={key === "values" ? "text" : "decimal"}
      onChange={(event) => onType({ ...typed, [key]: event.target.value })}
    />
  );
  return (
    <div className={styles.parameter} role="group" aria-label={parameter.name}>
      <div>
        <b>{parameter.name}</b>
        <p className={styles.soft}>
          {fixed ?? parameter.type}
          {parameter.default === undefined ? "" : t`, default ${String(parameter.default)}`}
        </p>
      </div>
      {fixed !== null ? null : parameter.values === undefined ? (
        <div className={styles.ends}>
          {field("min", t`Min`)}
          {field("max", t`Max`)}
        </div>
      ) : (
        field("values", t`Values`)
      )}
      {fault() === undefined ? null : <p className={styles.fault}>{fault()}</p>}
    </div>
  );
}

/** Describe how many trials lie outside. */
function describe(outside: { finished: number; running: number; waiting: number }, study: Study): string {
  const { finished, running, waiting } = outside;
  if (finished + running + waiting === 0) return t`No trial lies outside.`;
  const all = plural(study.finished_count, { one: "# finished trial", other: "# finished trials" });
  const parts = [t`${formatNumber(finished)} of ${all} would lie outside.`];
  if (running > 0) parts.push(plural(running, { one: "# running trial would also lie outside. It may finish.", other: "# running trials would also lie outside. They may finish." }));
  if (waiting > 0)
    parts.push(plural(waiting, { one: "# waiting trial would also lie outside. It would be withdrawn.", other: "# waiting trials would also lie outside. They would be withdrawn." }));
  return parts.join(" ");
}
