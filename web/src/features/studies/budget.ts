/** What a field says of a limit: null where it is empty, NaN where it is no number. */
export function limitOf(text: string, unit = 1): number | null {
  const limit = Number(text) * unit;
  return text.trim() === "" ? null : Number.isFinite(limit) ? limit : NaN;
}
