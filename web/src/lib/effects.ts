import { t } from "@lingui/core/macro";
import { formatPercent } from "./format";

/** Format a logarithm of a ratio as a change: −0.1 → "−9.5 %". */
export function changeText(log: number): string {
  const share = Math.expm1(log);
  // A change that is shown as zero has no sign.
  const text = formatPercent(Math.abs(share) < 0.0005 ? 0 : share, 1);
  return share >= 0.0005 ? `+${text}` : text;
}

/** Format the 95 % interval of an effect; null while an end is unknown. */
export function intervalText(low: number | null, high: number | null): string | null {
  if (low === null || high === null) return null;
  return t`${changeText(low)} to ${changeText(high)}`;
}
