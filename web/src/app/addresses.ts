import type { StudySort } from "@/features/studies/api";
import type { StudySpec } from "@/lib/api/client";

/* eslint-disable lingui/no-unlocalized-strings -- words of addresses */
const SHOWN = ["all", "open", "ended", "attention"] as const;
/** The parts of a study's page, each with an address. */
const STUDY_TABS = ["overview", "trials", "analysis", "trade-offs", "timeline", "setup"] as const;
export type StudyTab = (typeof STUDY_TABS)[number];
const SECTIONS = ["tokens", "members", "quota", "audit", "tenants", "queue"] as const;
export type Section = (typeof SECTIONS)[number];
/* eslint-enable lingui/no-unlocalized-strings */

/** The parts that there are of a study: trade-offs where it has several objectives. Undefined: of any study. */
export function tabsOf(spec: Pick<StudySpec, "objectives"> | undefined): readonly StudyTab[] {
  return STUDY_TABS.filter((tab) => tab !== "trade-offs" || (spec?.objectives.length ?? 0) > 1);
}

/** What stands behind the question mark, as it comes: from anywhere. */
type Search = Record<string, unknown>;

interface SignInSearch {
  next?: string | undefined;
  error?: string | undefined;
  /** What the identity provider sends the browser back with, beside a code or an error. */
  state?: string | undefined;
}

/** Where to go after the sign-in, and what came back from the provider. */
export function signInSearch({ next, error, state }: Search): SignInSearch {
  return {
    // Only paths of this site: not //elsewhere.example. What is left out here would come through as it is.
    next: typeof next === "string" && /^\/(?![/\\])/.test(next) ? next : undefined,
    error: typeof error === "string" ? error : undefined,
    // One of digits alone has become a number.
    state: typeof state === "string" || typeof state === "number" ? String(state) : undefined,
  };
}

/** What is looked for in the list of studies. */
export interface StudiesSearch {
  q?: string | undefined;
  show?: (typeof SHOWN)[number] | undefined;
  component?: string | undefined;
  application?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  sort?: StudySort | undefined;
}

export function studiesSearch(search: Search): StudiesSearch {
  return {
    q: text(search.q),
    show: SHOWN.find((one) => one === search.show),
    component: text(search.component),
    application: text(search.application),
    owner: text(search.owner),
    tag: text(search.tag),
    // The service refuses what it does not know, and says what it knows.
    sort: text(search.sort) as StudySort | undefined,
  };
}

export function studySearch({ tab }: Search): { tab?: StudyTab | undefined } {
  return { tab: STUDY_TABS.find((one) => one === tab && one !== "overview") };
}

export function compareSearch({ study, metric }: Search): { study: string[]; metric?: string | undefined } {
  const names = [study].flat().flatMap((name) => text(name) ?? []);
  return { study: [...new Set(names)], metric: text(metric) };
}

/** Where a new study starts from: another study, or a component. */
export function newStudySearch({ clone, component }: Search): { clone?: string | undefined; component?: string | undefined } {
  return { clone: text(clone), component: text(component) };
}

/** What is written: a new component, or what comes after a version of one, whose text it begins with. */
export function writeComponentSearch({ name, version }: Search): { name?: string | undefined; version?: number | undefined } {
  return { name: text(name), version: typeof version === "number" && Number.isInteger(version) && version > 0 ? version : undefined };
}

export function administrationSearch({ section }: Search): { section?: Section | undefined } {
  return { section: SECTIONS.find((one) => one === section) };
}

/** A search parameter as text; one of digits alone has become a number. */
function text(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
