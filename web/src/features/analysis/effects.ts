import type { Configuration, InsightData, Scalar } from "@/lib/api/client";

/** The effect of a level of a parameter against its default level, for one objective. */
export interface Worth {
  metric: string;
  change: number;
  /** Standard deviation of the change, estimated by the model. */
  deviation: number;
}

export interface EffectRow {
  parameter: string;
  level: Scalar;
  worth: Worth[];
}

// A parameter with more levels than this is a scale: its curve shows more than a table.
const FEW = 8;

/** Return the effect of each level of each option against the default, averaged over the other parameters, most important first. */
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
