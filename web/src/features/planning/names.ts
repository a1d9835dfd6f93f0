/** Return a name without the number at its end: flags of flags-1. */
export function stemOf(name: string): string {
  const [, numbered, ended] = /^(?:(.+)-|(.*\D))\d{1,6}$/.exec(name) ?? [];
  return numbered ?? ended ?? name;
}

/** Return the next free name: flags-1 → flags-2; flags → flags-2. */
export function nextName(name: string, taken: readonly string[]): string {
  const stem = stemOf(name);
  let number = stem === name ? 2 : Number(/\d+$/.exec(name)?.[0]) + 1;
  while (taken.includes(`${stem}-${number}`)) number += 1;
  return `${stem}-${number}`;
}
