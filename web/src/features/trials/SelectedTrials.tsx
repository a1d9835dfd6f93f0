import { plural, t } from "@lingui/core/macro";
import { Button } from "@/components/Button";
import { Problem } from "@/components/Message";
import type { Trial } from "@/lib/api/client";
import { saveText } from "@/lib/browser";
import { useStopTrials } from "./api";
import styles from "./TrialTable.module.css";

/** The actions on the selected trials: export them, and stop those that are open. */
export function SelectedTrials({ study, trials, mayStop, onClear }: { study: string; trials: Trial[]; mayStop: boolean; onClear: () => void }) {
  const stop = useStopTrials(study);
  const open = trials.filter(({ state }) => state === "ACTIVE" || state === "REQUESTED");
  const sorted = [...trials].sort((a, b) => a.number - b.number);
  return (
    <section className={styles.selected} aria-label={t`Selected trials`}>
      <span>{plural(trials.length, { one: "# selected", other: "# selected" })}</span>
      <Button small onClick={() => saveText(`${study}-trials.csv`, "text/csv", csvText(sorted))}>
        {t`Export as CSV`}
      </Button>
      <Button small onClick={() => saveText(`${study}-trials.json`, "application/json", `${JSON.stringify(sorted, null, 2)}\n`)}>
        {t`Export as JSON`}
      </Button>
      {mayStop && open.length > 0 ? (
        <Button small kind="danger" disabled={stop.isPending} onClick={() => stop.mutate(open.map(({ number }) => number), { onSuccess: onClear })}>
          {plural(open.length, { one: "Stop # trial", other: "Stop # trials" })}
        </Button>
      ) : null}
      <Button small kind="quiet" onClick={onClear}>
        {t`Clear selection`}
      </Button>
      {stop.error === null ? null : <Problem error={stop.error} />}
    </section>
  );
}

/* eslint-disable lingui/no-unlocalized-strings -- names of fields */
const FIELDS = ["number", "state", "origin", "reason", "agent", "node", "attempt", "seconds", "doubt", "round", "breaks", "started_at", "finished_at"] as const;
const MEASURED = ["share", "wait"] as const;

/** Return trials as CSV, with a column for each metric and parameter. Numbers are exact. */
export function csvText(trials: readonly Trial[]): string {
  const metrics = [...new Set(trials.flatMap(({ metrics }) => Object.keys(metrics ?? {})))];
  const params = [...new Set(trials.flatMap(({ params }) => Object.keys(params)))];
  const rows = trials.map((trial) => [
    ...FIELDS.map((field) => trial[field]),
    ...MEASURED.map((name) => trial.interference?.[name]),
    ...metrics.map((name) => trial.metrics?.[name]),
    ...params.map((name) => trial.params[name]),
  ]);
  return [[...FIELDS, ...MEASURED, ...metrics.map((name) => `metric:${name}`), ...params.map((name) => `param:${name}`)], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function cell(value: string | number | boolean | string[] | null | undefined): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return cell(value.join("; "));
  const text = typeof value === "string" ? withoutFormulas(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Return a text with an apostrophe in front of each part that a spreadsheet would run as a formula: also after spaces, in
 * full width, and after a character at which it begins a new cell although the text is quoted.
 */
function withoutFormulas(value: string): string {
  const text = value.split(/([;\t\r\n])/).map((part) => (isFormula(part) ? `'${part}` : part)).join("");
  return /^[\t\r\n]/.test(value) ? `'${text}` : text;
}

function isFormula(part: string): boolean {
  return /^[=+\-@]/.test(part.trimStart().slice(0, 1).normalize("NFKC"));
}
