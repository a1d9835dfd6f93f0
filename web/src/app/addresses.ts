import type { Step } from "@/features/planning/faults";
import type { StudySort } from "@/features/studies/api";
import type { StudySpec, StudyState } from "@/lib/api/client";

/* eslint-disable lingui/no-unlocalized-strings -- parts of addresses */
const SHOWN = ["all", "open", "ended", "attention"] as const;
/** The tabs of a study's page, each with its own address. */
const STUDY_TABS = ["overview", "live", "trials", "analysis", "trade-offs", "timeline", "setup"] as const;
export type StudyTab = (typeof STUDY_TABS)[number];
const SECTIONS = ["tokens", "members", "quota", "channels", "audit", "tenants", "queue"] as const;
const STUDY_STATES = ["ACTIVE", "PAUSED", "COMPLETED", "ABORTED"] as const satisfies StudyState[];
const STEPS = ["what", "space", "goals", "method", "budget", "review"] as const satisfies Step[];
const AUTHORS = ["people", "machinery"] as const;
export type Section = (typeof SECTIONS)[number];
/** The tabs of the page on application matching, each with its own address. */
export const MATCHING_TABS = ["records", "explain", "jobs", "quality", "settings"] as const;
export type MatchingTab = (typeof MATCHING_TABS)[number];
const RECORD_STATES = ["ACTIVE", "WITHDRAWN"] as const;
const DECISIONS = ["APPLIED", "CONTROL", "DRY_RUN", "REFUSED", "EXPLORED"] as const;
/* eslint-enable lingui/no-unlocalized-strings */

/**
 * Return the tabs of a study: trade-offs only if it has several objectives, and live only if it tunes a system that serves. An unknown
 * study has the common tabs.
 */
export function tabsOf(spec: Pick<StudySpec, "objectives" | "live"> | undefined): readonly StudyTab[] {
  return STUDY_TABS.filter((tab) => {
    if (tab === "live") return spec?.live != null;
    return tab !== "trade-offs" || (spec?.objectives.length ?? 0) > 1;
  });
}

/** The study that the page on live systems shows; without one, the first. */
export function liveSearch({ study }: Search): { study?: string | undefined } {
  return { study: text(study) };
}

/** The query of an address, unchecked: anybody can write it. */
type Search = Record<string, unknown>;

interface SignInSearch {
  next?: string | undefined;
  error?: string | undefined;
  /** The identity provider sends the browser back with this, and with a code or an error. */
  state?: string | undefined;
}

/** Return the page to open after the sign-in, and the provider's answer. */
export function signInSearch({ next, error, state }: Search): SignInSearch {
  return {
    // Only paths of this site, not //elsewhere.example. An invalid value is set to undefined, or the router would keep it.
    next: typeof next === "string" && /^\/(?![/\\])/.test(next) ? next : undefined,
    error: typeof error === "string" ? error : undefined,
    // The router turns a value of digits into a number.
    state: typeof state === "string" || typeof state === "number" ? String(state) : undefined,
  };
}

/** The filter and order of the list of studies. */
export interface StudiesSearch {
  q?: string | undefined;
  show?: (typeof SHOWN)[number] | undefined;
  component?: string | undefined;
  application?: string | undefined;
  owner?: string | undefined;
  tag?: string | undefined;
  state?: StudyState | undefined;
  sort?: StudySort | undefined;
  /** Conditions on columns, such as "trials > 8". */
  where?: string[] | undefined;
}

export function studiesSearch(search: Search): StudiesSearch {
  return {
    q: text(search.q),
    show: SHOWN.find((one) => one === search.show),
    component: text(search.component),
    application: text(search.application),
    owner: text(search.owner),
    tag: text(search.tag),
    state: STUDY_STATES.find((one) => one === search.state),
    // The service refuses an unknown order and names the known ones.
    sort: text(search.sort) as StudySort | undefined,
    where: conditions(search.where),
  };
}

/** Return what the table of components or agents is filtered by. */
export function tableSearch({ q, where }: Search): { q?: string | undefined; where?: string[] | undefined } {
  return { q: text(q), where: conditions(where) };
}

/** Return what the gallery is filtered by. */
export function gallerySearch({ q }: Search): { q?: string | undefined } {
  return { q: text(q) };
}

/** The tab of a study, the choices of its trajectory and its analysis, and the filter, order and page of its table of trials. */
export interface StudySearch {
  tab?: StudyTab | undefined;
  metric?: string | undefined;
  show?: "configurations" | undefined;
  across?: "time" | undefined;
  scale?: "log" | undefined;
  range?: "all" | undefined;
  /** An order of trials; a leading - means descending. */
  sort?: string | undefined;
  state?: string | undefined;
  reason?: string | undefined;
  /** Conditions on trials, such as "param:threads > 8". */
  where?: string[] | undefined;
  page?: number | undefined;
  /** The chosen member of the Pareto front, by the number of its first trial. */
  point?: number | undefined;
  /** The columns of the user's own plot. */
  x?: string | undefined;
  y?: string | undefined;
  color?: string | undefined;
  size?: string | undefined;
}

export function studySearch({ tab, metric, show, across, scale, range, sort, state, reason, where, page, point, x, y, color, size }: Search): StudySearch {
  return {
    tab: STUDY_TABS.find((one) => one === tab && one !== "overview"),
    metric: text(metric),
    show: show === "configurations" ? show : undefined,
    across: across === "time" ? across : undefined,
    scale: scale === "log" ? scale : undefined,
    range: range === "all" ? range : undefined,
    // The service refuses an unknown order, state or condition and names those that it knows.
    sort: text(sort),
    state: text(state),
    // An empty reason selects the trials without one.
    reason: reason === "" ? "" : text(reason),
    where: conditions(where),
    page: typeof page === "number" && Number.isInteger(page) && page > 1 ? page : undefined,
    point: typeof point === "number" && Number.isInteger(point) && point > 0 ? point : undefined,
    x: text(x),
    y: text(y),
    color: text(color),
    size: text(size),
  };
}

export function compareSearch({ study, metric }: Search): { study: string[]; metric?: string | undefined } {
  const names = [study].flat().flatMap((name) => text(name) ?? []);
  return { study: [...new Set(names)], metric: text(metric) };
}

/** The source of a new study, another study, a component or an entry of the gallery, and the step of the form. */
export interface NewStudySearch {
  clone?: string | undefined;
  component?: string | undefined;
  /** An entry of the gallery, such as sqlite/durable.yml. */
  gallery?: string | undefined;
  step?: Step | undefined;
}

export function newStudySearch({ clone, component, gallery, step }: Search): NewStudySearch {
  return { clone: text(clone), component: text(component), gallery: text(gallery), step: STEPS.find((one) => one === step && one !== "what") };
}

/** Return the version of a component whose text the editor begins with. Without a name: a new component. */
export function writeComponentSearch({ name, version }: Search): { name?: string | undefined; version?: number | undefined } {
  return { name: text(name), version: typeof version === "number" && Number.isInteger(version) && version > 0 ? version : undefined };
}

/** The section, and the filter of the audit trail. */
export interface AdministrationSearch {
  section?: Section | undefined;
  by?: (typeof AUTHORS)[number] | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  /** Conditions on the columns of the section's table. */
  where?: string[] | undefined;
}

export function administrationSearch(search: Search): AdministrationSearch {
  return {
    section: SECTIONS.find((one) => one === search.section),
    by: AUTHORS.find((one) => one === search.by),
    actor: text(search.actor),
    action: text(search.action),
    target: text(search.target),
    from: text(search.from),
    to: text(search.to),
    where: conditions(search.where),
  };
}

/** The tab, the filter and order of records, the filter of jobs, and the cluster whose settings are shown. */
export interface MatchingSearch {
  tab?: MatchingTab | undefined;
  q?: string | undefined;
  state?: (typeof RECORD_STATES)[number] | undefined;
  sort?: string | undefined;
  record?: string | undefined;
  decision?: (typeof DECISIONS)[number] | undefined;
  cluster?: string | undefined;
  /** Conditions on the columns of the tab's table. */
  where?: string[] | undefined;
}

export function matchingSearch(search: Search): MatchingSearch {
  return {
    tab: MATCHING_TABS.find((one) => one === search.tab && one !== "records"),
    q: text(search.q),
    state: RECORD_STATES.find((one) => one === search.state),
    // The service refuses an unknown order and names the known ones.
    sort: text(search.sort),
    record: text(search.record),
    decision: DECISIONS.find((one) => one === search.decision),
    cluster: text(search.cluster),
    where: conditions(search.where),
  };
}

/** Return the conditions on the columns of a table, undefined if there are none. */
function conditions(where: unknown): string[] | undefined {
  const found = [where].flat().flatMap((one) => text(one) ?? []);
  return found.length > 0 ? found : undefined;
}

/** Return a query value as text, or undefined if it is empty. The router turns a value of digits into a number. */
function text(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
