import { t } from "@lingui/core/macro";
import type { Configuration } from "@/lib/api/client";
import { formatNumber, formatValue } from "@/lib/format";

/** Describe how a configuration differs from the default, with at most three parameters by name. */
export function differences(params: Configuration, standard: Configuration | undefined): string {
  if (standard === undefined) return "";
  const names = new Set([...Object.keys(params), ...Object.keys(standard)]);
  const differing = [...names].filter((name) => params[name] !== standard[name]);
  if (differing.length === 0) return t`the default`;
  const first = differing
    .slice(0, 3)
    .map((name) => `${name} ${formatValue(params[name])}`)
    .join(", ");
  return differing.length > 3 ? t`${first} and ${formatNumber(differing.length - 3)} more` : first;
}
