import type { Trial, TrialState } from "@/lib/api/client";

/** Which trials are shown. */
export interface Filter {
  /** Empty: any. */
  state: TrialState | "";
  /** What they ended for, empty where it was not told; null: whatever it was. */
  reason: string | null;
}

export const ALL: Filter = { state: "", reason: null };

export function isShown({ state, reason }: Filter, trial: Trial): boolean {
  return (state === "" || trial.state === state) && (reason === null || trial.reason === reason);
}
