import { t } from "@lingui/core/macro";
import type { Effect } from "@/lib/api/client";

/** One way to say how much each parameter matters: a share of the variance with its interval, null where nothing is known. */
export interface Lane {
  name: string;
  shares: ({ value: number; low: number; high: number } | null)[];
}

/** The forest's importance and, where there is a Gaussian process, its Sobol’ indices. */
export function lanesOf(effects: readonly Effect[]): Lane[] {
  const forest: Lane = {
    name: t`Forest: alone`,
    shares: effects.map(({ importance, deviation }) => ({ value: importance, low: Math.max(0, importance - deviation), high: Math.min(1, importance + deviation) })),
  };
  if (effects.every(({ sensitivity }) => !sensitivity)) return [forest];
  return [
    forest,
    { name: t`Gaussian process: alone`, shares: effects.map(({ sensitivity }) => sensitivity?.alone ?? null) },
    { name: t`Gaussian process: with interactions`, shares: effects.map(({ sensitivity }) => sensitivity?.together ?? null) },
  ];
}
