import { t } from "@lingui/core/macro";
import { ApiError } from "./api/client";
import { formatNumber } from "./format";

/**
 * Return the durations that the service allows, from its refusal of one, in the unit of the field: "more than 1.09m, at most 52m".
 * Undefined if the error is about something else.
 */
export function writtenTimes(error: Error | null, { symbol, seconds }: { symbol: string; seconds: number }): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { above, at_most: most } = error.data;
  if (typeof above !== "number") return undefined;
  // Rounded towards values that are certainly allowed.
  const low = `${formatNumber(Math.ceil((100 * above) / seconds) / 100, 6)}${symbol}`;
  if (typeof most !== "number") return t`more than ${low}`;
  const high = `${formatNumber(Math.floor((100 * most) / seconds) / 100, 6)}${symbol}`;
  return t`more than ${low}, at most ${high}`;
}
