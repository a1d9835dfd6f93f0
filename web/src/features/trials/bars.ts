import { t } from "@lingui/core/macro";
import type { Trial } from "@/lib/api/client";
import { measuredBy } from "./sorting";

// The latest; more would be less than a pixel wide.
const MOST = 600;
const MOST_LINES = 40;

/** What a timeline shows: the latest trials, a line for each who measured them, and how many trials are left out. */
export interface Layout {
  shown: Trial[];
  lines: string[];
  left: number;
}

export function measurer(trial: Trial): string {
  return measuredBy(trial) || t`a client`;
}

/** Of trials in the order of their numbers, those that fit on a timeline. */
export function laidOut(trials: readonly Trial[]): Layout {
  const begun = trials.filter(({ started_at, origin }) => started_at !== null && origin !== "added");
  const latest = begun.slice(-MOST);
  // Those who measured last, where there are too many for a line each.
  const who = new Set<string>();
  for (const trial of latest.toReversed()) if (who.size < MOST_LINES) who.add(measurer(trial));
  const shown = latest.filter((trial) => who.has(measurer(trial)));
  return { shown, lines: [...who].sort(), left: begun.length - shown.length };
}
