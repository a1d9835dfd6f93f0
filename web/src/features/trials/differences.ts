import type { Configuration } from "@/lib/api/client";
import { formatValue } from "@/lib/format";

/** In what a configuration differs from the default, the first three in words. */
export function differences(params: Configuration, standard: Configuration | undefined): string {
  if (standard === undefined) return "";
  const names = new Set([...Object.keys(params), ...Object.keys(standard)]);
  const differing = [...names].filter((name) => params[name] !== standard[name]);
  if (differing.length === 0) return "the default";
  const first = differing
    .slice(0, 3)
    .map((name) => `${name} ${formatValue(params[name])}`)
    .join(", ");
  return differing.length > 3 ? `${first} and ${differing.length - 3} more` : first;
}
