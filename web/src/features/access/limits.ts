import { msg } from "@lingui/core/macro";
import { formatBytes, formatNumber } from "@/lib/format";

/** What a tenant may use, by the service's name for it: what is said of its use, and of the limit. */
export const LIMITS = {
  studies: { used: msg`Studies`, limit: msg`Studies`, format: formatNumber },
  active_trials: { used: msg`Trials at work`, limit: msg`Trials at work`, format: formatNumber },
  stored_trials: { used: msg`Stored trials`, limit: msg`Stored trials`, format: formatNumber },
  log_bytes: { used: msg`Logs and files`, limit: msg`Logs and files, in bytes`, format: formatBytes },
  suggestions_per_minute: { used: msg`Suggestions this minute`, limit: msg`Suggestions per minute`, format: formatNumber },
  worker_seconds_per_day: { used: msg`Seconds of workers today`, limit: msg`Seconds of workers per day`, format: formatNumber },
} as const;

export type Limit = keyof typeof LIMITS;

export const LIMIT_NAMES = Object.keys(LIMITS) as Limit[];
