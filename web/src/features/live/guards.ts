import type { LiveReading } from "@/lib/api/client";

/** How near the reading of a guard is to its limit. */
export interface Nearness {
  /** The share of the way to the limit that the reading has gone; 1 is the limit, and nothing is above MOST. */
  share: number;
  tone: "good" | "warn" | "bad" | "unknown";
}

/** The right end of a bar, so that a reading beyond the limit is seen as such. */
export const MOST = 1.25;
// From this share on, the bar warns.
const NEAR = 0.85;

/** Return how near a reading is to its limit; without a reading, or while the guard does not hold, that is unknown. */
export function nearness({ above, limit, value }: Pick<LiveReading, "above" | "limit" | "value">): Nearness {
  if (limit === null || value === null) return { share: 0, tone: "unknown" };
  const isBeyond = above ? value > limit : value < limit;
  const ratio = above ? value / limit : limit / value;
  // A limit of 0 or below has no ratio that means anything.
  const plain = Number.isFinite(ratio) && ratio >= 0 ? ratio : isBeyond ? MOST : 0;
  const share = isBeyond ? Math.max(plain, 1) : plain;
  return { share: Math.min(share, MOST), tone: isBeyond ? "bad" : share >= NEAR ? "warn" : "good" };
}
