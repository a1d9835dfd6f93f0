import type { Configuration, InsightData, Scalar } from "@/lib/api/client";

/** What a level of a parameter is worth against its default level, for one objective. */
export interface Worth {
  metric: string;
  change: number;
  /** Standard deviation of the change, as far as the model knows it. */
  deviation: number;
}

export interface EffectRow {
  parameter: string;
  level: Scalar;
  worth: Worth[];
}

// A parameter with more levels than this is a scale: its curve tells more than a table.
const FEW = 8;

/** For each option, each of its levels against the default one, on average over the other parameters; those that matter most come first. */
export function effectRows({ objectives }: InsightData, standard: Configuration): EffectRow[] {
  const rows = new Map<string, EffectRow & { size: number }>();
  for (const { metric, effects } of objectives) {
    for (const { parameter, levels, change, importance } of effects) {
      const base = levels.findIndex((level) => level === standard[parameter]);
      if (levels.length > FEW || base < 0) continue;
      levels.forEach((level, index) => {
        if (index === base) return;
        const key = `${parameter} ${JSON.stringify(level)}`;
        const row = rows.get(key) ?? { parameter, level, worth: [], size: 0 };
        row.worth.push({ metric, change: change.mean[index] ?? NaN, deviation: change.deviation[index] ?? NaN });
        row.size = Math.max(row.size, importance);
        rows.set(key, row);
      });
    }
  }
  return [...rows.values()].sort((a, b) => b.size - a.size).map(({ parameter, level, worth }) => ({ parameter, level, worth }));
}
