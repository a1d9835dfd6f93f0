/** Parse a limit: null if the text is empty, NaN if it is not a number. */
export function limitOf(text: string, unit = 1): number | null {
  const limit = Number(text) * unit;
  return text.trim() === "" ? null : Number.isFinite(limit) ? limit : NaN;
}
