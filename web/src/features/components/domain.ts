import type { Parameter } from "@/lib/api/client";
import { formatNumber, formatValue } from "@/lib/format";

/** What values a parameter has, in words: "1 to 16, by 2", "a, b or c". */
export function domainOf(parameter: Parameter): string {
  const { type, min, max, step, factor, log, values } = parameter;
  if (type === "bool") return "on or off";
  if (type === "ordinal" || type === "categorical") {
    const texts = (values ?? []).map(formatValue);
    return texts.length > 8 ? `${texts.slice(0, 6).join(", ")}, … (${texts.length} values)` : listed(texts);
  }
  const range = `${min === undefined ? "?" : formatNumber(min, 6)} to ${max === undefined ? "?" : formatNumber(max, 6)}`;
  const grid = step !== undefined ? `, by ${formatNumber(step, 6)}` : factor !== undefined ? `, times ${formatNumber(factor, 6)}` : "";
  return `${range}${grid}${log === true ? ", logarithmic" : ""}`;
}

function listed(texts: string[]): string {
  return texts.length < 2 ? texts.join("") : `${texts.slice(0, -1).join(", ")} or ${texts.at(-1) ?? ""}`;
}
