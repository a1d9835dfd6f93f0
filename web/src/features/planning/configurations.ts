import { plural } from "@lingui/core/macro";
import { formatDigits } from "@/lib/format";

/** How many configurations there are, by the digits of their number, which may be larger than a number can be. */
export function configurations(size: string): string {
  const digits = formatDigits(size);
  return plural(Number(size), { one: `${digits} configuration`, other: `${digits} configurations` });
}
