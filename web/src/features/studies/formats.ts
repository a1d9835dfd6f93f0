import type { Configuration } from "@/lib/api/client";
import { formatValue } from "@/lib/format";
import type { Units } from "@/lib/space";

/** Return the parameters whose values differ from the default, a line for each: "cache: 8 → 11 MiB". */
export function differenceText(params: Configuration, standard: Configuration, units: Units): string {
  return [...new Set([...Object.keys(standard), ...Object.keys(params)])]
    .filter((name) => params[name] !== standard[name])
    .map((name) => `${name}: ${formatValue(standard[name])} → ${formatValue(params[name], units[name])}\n`)
    .join("");
}
