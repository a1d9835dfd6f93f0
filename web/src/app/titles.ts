import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { StudyTab } from "./addresses";

/** The titles of the tabs of a study's page. */
export const TITLES: Record<StudyTab, MessageDescriptor> = {
  overview: msg`Overview`,
  trials: msg`Trials`,
  analysis: msg`Analysis`,
  "trade-offs": msg`Trade-offs`,
  timeline: msg`Timeline`,
  setup: msg`Setup`,
};
