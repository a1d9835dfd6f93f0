import type { TrialState } from "@/lib/api/client";

/** A filter of trials, which the service applies. */
export interface Filter {
  /** Empty: any. */
  state: TrialState | "";
  /** The reason why they ended, empty if none was given; null: any. */
  reason: string | null;
  /** Conditions on columns, such as "param:threads > 8". All of them hold. */
  where: readonly string[];
}

export const ALL: Filter = { state: "", reason: null, where: [] };
