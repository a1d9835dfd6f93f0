import { t } from "@lingui/core/macro";
import { formatPercent } from "./format";

/** Format a logarithm of a ratio as a change: −0.1 → "−9.5 %". */
export function changeText(log: number): string {
  const text = formatPercent(Math.expm1(log), 1);
  return log > 0 ? `+${text}` : text;
}

/** Format the 95 % interval of an effect; null while an end is unknown. */
export function intervalText(low: number | null, high: number | null): string | null {
  if (low === null || high === null) return null;
  return t`${changeText(low)} to ${changeText(high)}`;
}
