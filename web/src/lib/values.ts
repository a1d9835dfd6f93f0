/** What a person has typed as a value: a number where it is one, true and false, else the text. */
export function valueOf(text: string): string | number | boolean {
  const trimmed = text.trim();
  if (trimmed === "true" || trimmed === "false") return trimmed === "true";
  return trimmed !== "" && Number.isFinite(Number(trimmed)) ? Number(trimmed) : trimmed;
}

/** Values with commas between them. */
export function valuesOf(text: string): (string | number | boolean)[] {
  return text
    .split(",")
    .filter((item) => item.trim() !== "")
    .map(valueOf);
}

/** How values are typed. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.map(textOf).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
