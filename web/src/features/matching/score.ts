import type { RecordMatch } from "@/lib/api/client";

/** One field's part in a score: it reaches from `start` to `start + contribution`. */
export interface Step {
  field: string;
  weight: number;
  similarity: number;
  contribution: number;
  start: number;
}

/** Return the weighted parts of a score, each beginning where the one before ends. */
export function stepsOf(parts: RecordMatch["parts"]): Step[] {
  let start = 0;
  return parts
    .filter(({ weight }) => weight > 0)
    .map(({ field, weight, similarity }) => {
      const step = { field, weight, similarity, contribution: weight * similarity, start };
      start += step.contribution;
      return step;
    });
}

/** Return the fields that cost a score most, at most `most`: those with a weight and little similarity, the costliest first. */
export function costliest(parts: RecordMatch["parts"], most = 2): { field: string; lost: number }[] {
  return parts
    .map(({ field, weight, similarity }) => ({ field, lost: weight * (1 - similarity) }))
    .filter(({ lost }) => lost > 0.005)
    .sort((one, other) => other.lost - one.lost)
    .slice(0, most);
}
