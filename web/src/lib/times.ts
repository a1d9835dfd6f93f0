import { t } from "@lingui/core/macro";
import { ApiError } from "./api/client";
import { formatNumber } from "./format";

/**
 * What lengths of time are allowed where the service has refused one, in another unit than its seconds; undefined where the error says
 * nothing of that. "more than 1.09m, at most 52m".
 */
export function writtenTimes(error: Error | null, { symbol, seconds }: { symbol: string; seconds: number }): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { above, at_most: most } = error.data;
  if (typeof above !== "number") return undefined;
  // Rounded to what is allowed for certain.
  const low = `${formatNumber(Math.ceil((100 * above) / seconds) / 100, 6)}${symbol}`;
  if (typeof most !== "number") return t`more than ${low}`;
  const high = `${formatNumber(Math.floor((100 * most) / seconds) / 100, 6)}${symbol}`;
  return t`more than ${low}, at most ${high}`;
}
