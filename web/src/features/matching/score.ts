import { i18n, type MessageDescriptor } from "@lingui/core";
import { msg } from "@lingui/core/macro";
import type { MatchingQuality, RecordMatch } from "@/lib/api/client";

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

/** The fields that are compared, as the service names and orders them. */
const FIELDS: Record<string, MessageDescriptor> = {
  user: msg`User`,
  name: msg`Job name`,
  program: msg`Program`,
  path: msg`Path of the program`,
  options: msg`Options`,
  second: msg`Second`,
  minute: msg`Minute`,
  hour: msg`Hour`,
  day: msg`Day of the month`,
  weekday: msg`Day of the week`,
  night: msg`Night or day`,
  nodes: msg`Nodes`,
};

/** Return the name of a compared field for people. */
export function fieldText(field: string): string {
  const known = FIELDS[field];
  return known === undefined ? field : i18n._(known);
}

export type AtThreshold = MatchingQuality["qualities"][number];

/** Return the quality at the least measured threshold that is not below the given one, which accepts the same matches or fewer; undefined above all. */
export function atThreshold(qualities: readonly AtThreshold[], threshold: number): AtThreshold | undefined {
  return qualities.find((one) => one.threshold >= threshold - 1e-9);
}
