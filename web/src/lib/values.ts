/** Parse a typed value: a number, true or false, or else a text. */
export function valueOf(text: string): string | number | boolean {
  const trimmed = text.trim();
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  return trimmed !== "" && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** Parse values that are separated by commas. */
export function valuesOf(text: string): (string | number | boolean)[] {
  return text
    .split(",")
    .filter((item) => item.trim() !== "")
    .map(valueOf);
}

/** Return the text that parses to these values. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(textOf).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
