import type { Configuration, Objective, Trial } from "@/lib/api/client";

/** A configuration: the number of its first trial, and the median, lowest and highest value of each metric. */
export interface Aggregate {
  number: number;
  params: Configuration;
  count: number;
  median: Record<string, number>;
  low: Record<string, number>;
  high: Record<string, number>;
  /** The outcome constraints that its trials break, if at least half of them break one; null otherwise. */
  breaks: string[] | null;
}

/** Return the configurations that have a value for each objective, in the order of their first trials. */
export function aggregate(trials: Trial[], objectives: Pick<Objective, "metric">[]): Aggregate[] {
  const groups = new Map<string, Trial[]>();
  for (const trial of trials) {
    if (trial.state !== "COMPLETED" || !objectives.every(({ metric }) => Number.isFinite(trial.metrics?.[metric]))) continue;
    const key = keyOf(trial.params);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [trial]);
    else group.push(trial);
  }
  return [...groups.values()].map((group) => {
    const [first] = group;
    const result: Aggregate = { number: first?.number ?? 0, params: first?.params ?? {}, count: group.length, median: {}, low: {}, high: {}, breaks: null };
    for (const { metric } of objectives) {
      const values = group.map(({ metrics }) => metrics?.[metric] ?? NaN).sort((a, b) => a - b);
      const half = (values.length - 1) / 2;
      result.median[metric] = ((values[Math.floor(half)] ?? NaN) + (values[Math.ceil(half)] ?? NaN)) / 2;
      result.low[metric] = values[0] ?? NaN;
      result.high[metric] = values.at(-1) ?? NaN;
    }
    const broken = group.flatMap(({ breaks }) => (breaks === null ? [] : [breaks]));
    if (2 * broken.length >= group.length) result.breaks = [...new Set(broken.flat())];
    return result;
  });
}

/** Return a key that is equal for equal configurations, whatever the order of their parameters. */
function keyOf(params: Configuration): string {
  return JSON.stringify(Object.entries(params).sort(([a], [b]) => (a < b ? -1 : 1)));
}
