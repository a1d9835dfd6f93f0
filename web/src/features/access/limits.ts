import { msg } from "@lingui/core/macro";
import { formatBytes, formatNumber } from "@/lib/format";

/** The limits of a tenant by their names in the API, with the texts for the usage and for the limit. */
export const LIMITS = {
  studies: { used: msg`Studies`, limit: msg`Studies`, format: formatNumber },
  active_trials: { used: msg`Active trials`, limit: msg`Active trials`, format: formatNumber },
  stored_trials: { used: msg`Stored trials`, limit: msg`Stored trials`, format: formatNumber },
  log_bytes: { used: msg`Logs and files`, limit: msg`Logs and files, in bytes`, format: formatBytes },
  suggestions_per_minute: { used: msg`Suggestions this minute`, limit: msg`Suggestions per minute`, format: formatNumber },
  worker_seconds_per_day: { used: msg`Worker seconds today`, limit: msg`Worker seconds per day`, format: formatNumber },
  matching_records: { used: msg`Matching records`, limit: msg`Matching records`, format: formatNumber },
} as const;

export type Limit = keyof typeof LIMITS;

export const LIMIT_NAMES = Object.keys(LIMITS) as Limit[];
