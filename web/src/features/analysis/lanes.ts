import { t } from "@lingui/core/macro";
import type { Effect } from "@/lib/api/client";

/** One measure of the importance of each parameter: a share of the variance with its interval, or null if unknown. */
export interface Lane {
  name: string;
  shares: ({ value: number; low: number; high: number } | null)[];
}

/** Return the forest's importance and, if there is a Gaussian process, its Sobol’ indices. */
export function lanesOf(effects: readonly Effect[]): Lane[] {
  const forest: Lane = {
    name: t`Forest: main effect`,
    shares: effects.map(({ importance, deviation }) => ({ value: importance, low: Math.max(0, importance - deviation), high: Math.min(1, importance + deviation) })),
  };
  if (effects.every(({ sensitivity }) => !sensitivity)) return [forest];
  return [
    forest,
    { name: t`Gaussian process: main effect`, shares: effects.map(({ sensitivity }) => sensitivity?.alone ?? null) },
    { name: t`Gaussian process: total effect`, shares: effects.map(({ sensitivity }) => sensitivity?.together ?? null) },
  ];
}
