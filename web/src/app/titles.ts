import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { StudyTab } from "./addresses";

/** What the parts of a study's page are called. */
export const TITLES: Record<StudyTab, MessageDescriptor> = {
  overview: msg`Overview`,
  trials: msg`Trials`,
  analysis: msg`Analysis`,
  "trade-offs": msg`Trade-offs`,
  timeline: msg`Timeline`,
  setup: msg`Set-up`,
};
