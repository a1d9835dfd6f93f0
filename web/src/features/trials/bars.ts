import { t } from "@lingui/core/macro";
import type { Trial } from "@/lib/api/client";
import { measuredBy } from "./sorting";

/** The number of trials shown. With more, bars would be less than a pixel wide. */
export const MOST = 600;
const MOST_LINES = 40;

/** The content of a timeline: the latest trials, a line for each agent or client, and the number of omitted trials. */
export interface Layout {
  shown: Trial[];
  lines: string[];
  left: number;
}

export function measurer(trial: Trial): string {
  return measuredBy(trial) || t`a client`;
}

/** Return the latest trials that fit on a timeline. `trials` is sorted by number. */
export function laidOut(trials: readonly Trial[]): Layout {
  const begun = trials.filter(({ started_at, origin }) => started_at !== null && origin !== "added");
  const latest = begun.slice(-MOST);
  // The agents and clients that measured last, if there are too many for a line each.
  const who = new Set<string>();
  for (const trial of latest.toReversed()) if (who.size < MOST_LINES) who.add(measurer(trial));
  const shown = latest.filter((trial) => who.has(measurer(trial)));
  return { shown, lines: [...who].sort(), left: begun.length - shown.length };
}
