import type { MatchingQuality } from "@/lib/api/client";

export type AtThreshold = MatchingQuality["qualities"][number];

/** Return the quality at the least measured threshold that is not below the given one, which accepts the same matches or fewer; undefined above all. */
export function atThreshold(qualities: readonly AtThreshold[], threshold: number): AtThreshold | undefined {
  return qualities.find((one) => one.threshold >= threshold - 1e-9);
}
