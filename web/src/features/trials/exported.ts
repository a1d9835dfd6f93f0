import type { Trial } from "@/lib/api/client";

/* eslint-disable lingui/no-unlocalized-strings -- names of fields */
const FIELDS = ["number", "state", "origin", "reason", "agent", "node", "attempt", "seconds", "doubt", "started_at", "finished_at"] as const;

/** Return trials as CSV, with a column for each metric and parameter. Numbers are exact. */
export function csvText(trials: readonly Trial[]): string {
  const metrics = [...new Set(trials.flatMap(({ metrics }) => Object.keys(metrics ?? {})))];
  const params = [...new Set(trials.flatMap(({ params }) => Object.keys(params)))];
  const rows = trials.map((trial) => [
    ...FIELDS.map((field) => trial[field]),
    ...metrics.map((name) => trial.metrics?.[name]),
    ...params.map((name) => trial.params[name]),
  ]);
  return [[...FIELDS, ...metrics.map((name) => `metric:${name}`), ...params.map((name) => `param:${name}`)], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

function cell(value: string | number | boolean | null | undefined): string {
  if (value === null || value === undefined) return "";
  // A spreadsheet would run a text that begins like a formula.
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
