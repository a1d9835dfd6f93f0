import type { MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { MatchingTab, StudyTab } from "./addresses";

/** The titles of the tabs of a study's page. */
export const TITLES: Record<StudyTab, MessageDescriptor> = {
  overview: msg`Overview`,
  live: msg`Live`,
  trials: msg`Trials`,
  analysis: msg`Analysis`,
  "trade-offs": msg`Trade-offs`,
  timeline: msg`Timeline`,
  setup: msg`Setup`,
};

/** The titles of the tabs of the page on application matching. */
export const MATCHING_TITLES: Record<MatchingTab, MessageDescriptor> = {
  records: msg`Records`,
  explain: msg`Explain`,
  jobs: msg`Jobs`,
  quality: msg`Quality`,
  settings: msg`Settings`,
};
