import { msg } from "@lingui/core/macro";

/** The decisions about a job, and the ends of jobs, as they are shown. */
export const DECISIONS = {
  APPLIED: { text: msg`applied`, tone: "good" },
  CONTROL: { text: msg`control`, tone: "info" },
  DRY_RUN: { text: msg`dry run`, tone: "soft" },
  REFUSED: { text: msg`refused`, tone: "warn" },
} as const;

export const ENDS = { COMPLETED: msg`completed`, FAILED: msg`failed`, CANCELLED: msg`cancelled` };
