import { t } from "@lingui/core/macro";
import type { MatchingSettings, NewMatchingSettings } from "@/lib/api/client";

/** The settings as they are written in the form. */
export interface Draft {
  threshold: string;
  weights: Record<string, string>;
  night_from: string;
  night_until: string;
}

/** Return the texts of a form. Numbers have at most six digits and no separators. */
export function draftOf({ threshold, weights, night_from, night_until }: Pick<MatchingSettings, "threshold" | "weights" | "night_from" | "night_until">): Draft {
  const texts = Object.fromEntries(Object.entries(weights).map(([field, weight]) => [field, String(Number(weight.toPrecision(6)))]));
  return { threshold: String(threshold), weights: texts, night_from: String(night_from), night_until: String(night_until) };
}

/** Return the values of a form, null if there are faults, and the faults by the service's names of fields. */
export function readDraft(draft: Draft): { values: Omit<NewMatchingSettings, "cluster"> | null; faults: Record<string, string> } {
  const faults: Record<string, string> = {};
  const threshold = read(draft.threshold);
  if (threshold === null || threshold > 1) faults.threshold = t`Enter a number from 0 to 1.`;
  const hour = (field: "night_from" | "night_until") => {
    const value = read(draft[field]);
    if (value === null || !Number.isInteger(value) || value > 23) faults[field] = t`Enter an hour from 0 to 23.`;
    return value ?? 0;
  };
  const weights: Record<string, number> = {};
  for (const [field, text] of Object.entries(draft.weights)) {
    const value = read(text);
    if (value === null) faults[`weights.${field}`] = t`Enter a number of at least 0.`;
    else weights[field] = value;
  }
  const [night_from, night_until] = [hour("night_from"), hour("night_until")];
  if (Object.keys(faults).length === 0 && Object.values(weights).every((weight) => weight === 0)) faults.weights = t`At least one weight must be above 0.`;
  return { values: Object.keys(faults).length === 0 ? { threshold: threshold ?? 0, weights, night_from, night_until } : null, faults };
}

/** Return the share of a field in the sum of all weights; null while a weight cannot be read. */
export function shareOf({ weights }: Draft, field: string): number | null {
  const values = Object.values(weights).map(read);
  const own = read(weights[field] ?? "");
  const total = values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  return own === null || values.includes(null) || total === 0 ? null : own / total;
}

function read(text: string): number | null {
  const trimmed = text.trim();
  const value = Number(trimmed);
  return trimmed === "" || !Number.isFinite(value) || value < 0 ? null : value;
}
