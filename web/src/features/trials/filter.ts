import type { Trial, TrialState } from "@/lib/api/client";

/** A filter of trials. */
export interface Filter {
  /** Empty: any. */
  state: TrialState | "";
  /** The reason why they ended, empty if none was given; null: any. */
  reason: string | null;
}

export const ALL: Filter = { state: "", reason: null };

export function isShown({ state, reason }: Filter, trial: Trial): boolean {
  return (state === "" || trial.state === state) && (reason === null || trial.reason === reason);
}
