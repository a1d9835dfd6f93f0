import type { StudySpec, Trial } from "@/lib/api/client";

/** An optional column of the table of trials; `metric:` and `param:` are followed by a name. */
export type Shown = "agent" | "duration" | "differences" | "origin" | "attempt" | "started" | "reason" | `metric:${string}` | `param:${string}`;

export const DIFFERENCES = "differences";
// With more parameters than this, one column lists the differences from the default, since the table would be too wide.
const FEW = 6;

/** Return the names of the parameters of the space, and then of those that only earlier trials have. */
export function namesOf(spec: StudySpec, trials: readonly Trial[]): string[] {
  const names = new Set(spec.space.parameters.map(({ name }) => name));
  for (const { params } of trials) for (const name of Object.keys(params)) names.add(name);
  return [...names];
}

/** Return all available columns in their order. Metrics that are not objectives are included if a trial has them. */
export function columnsOf(spec: StudySpec, trials: Trial[]): Shown[] {
  const metrics = new Set(spec.objectives.map(({ metric }) => metric));
  for (const { metrics: values } of trials) for (const metric of Object.keys(values ?? {})) metrics.add(metric);
  return [
    ...[...metrics].map((metric) => `metric:${metric}` as const),
    DIFFERENCES,
    ...namesOf(spec, trials).map((name) => `param:${name}` as const),
    "agent",
    "duration",
    "started",
    "attempt",
    "origin",
    "reason",
  ];
}

/** Return the columns that are shown at first. */
export function usualColumns(spec: StudySpec): Shown[] {
  const { parameters } = spec.space;
  return [
    ...spec.objectives.map(({ metric }) => `metric:${metric}` as const),
    ...limitedMetrics(spec).map((metric) => `metric:${metric}` as const),
    ...(parameters.length <= FEW ? parameters.map(({ name }) => `param:${name}` as const) : [DIFFERENCES as Shown]),
    "agent",
    "duration",
  ];
}

/** Return the metrics with an outcome constraint that are no objectives, in the order of the constraints: "memory_mb <= 900". */
export function limitedMetrics({ objectives, outcome_constraints: limits = [] }: Pick<StudySpec, "objectives" | "outcome_constraints">): string[] {
  const metrics = limits.flatMap((limit) => /^\s*([\w.-]+)\s*(<=|>=|<|>)/.exec(limit)?.[1] ?? []);
  return [...new Set(metrics)].filter((metric) => objectives.every((objective) => objective.metric !== metric));
}

/** Return the columns that were chosen for a study in this browser, or the usual ones. */
export function shownColumns(study: string, spec: StudySpec): Shown[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(key(study)) ?? "null");
    const known = new Set<unknown>([...columnsOf(spec, []), ...usualColumns(spec)]);
    if (Array.isArray(stored)) return stored.filter((one): one is Shown => known.has(one) || /^(metric|param):/.test(String(one)));
  } catch {
    // Without storage, or with unreadable content, the usual columns are shown.
  }
  return usualColumns(spec);
}

/** Remember the columns of a study in this browser. */
export function rememberColumns(study: string, columns: Shown[]): void {
  try {
    localStorage.setItem(key(study), JSON.stringify(columns));
  } catch {
    // Without storage the choice holds until the page is loaded again.
  }
}

function key(study: string): string {
  return `trimtab-columns:${study}`;
}
