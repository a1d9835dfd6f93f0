import { plural } from "@lingui/core/macro";
import { formatDigits } from "@/lib/format";

/** Format a number of configurations that is given as text, since it may exceed the range of numbers. */
export function configurations(size: string): string {
  const digits = formatDigits(size);
  return plural(Number(size), { one: `${digits} configuration`, other: `${digits} configurations` });
}
