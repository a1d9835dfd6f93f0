import { plural, t } from "@lingui/core/macro";
import type { Parameter } from "@/lib/api/client";
import { formatList, formatNumber, formatValue } from "@/lib/format";

/** Describe the values of a parameter: "1 to 16 MiB, step 2", "a, b or c". */
export function domainOf(parameter: Parameter): string {
  const { type, min, max, step, factor, log, values, unit = "" } = parameter;
  if (type === "bool") return t`on or off`;
  if (type === "ordinal" || type === "categorical") {
    const texts = (values ?? []).map((value) => formatValue(value, unit));
    return texts.length > 8 ? `${texts.slice(0, 6).join(", ")}, … (${plural(texts.length, { one: "# value", other: "# values" })})` : formatList(texts);
  }
  const range = t`${min === undefined ? "?" : formatNumber(min, 6)} to ${max === undefined ? "?" : formatNumber(max, 6)}`;
  const grid = step !== undefined ? t`step ${formatNumber(step, 6)}` : factor !== undefined ? t`factor ${formatNumber(factor, 6)}` : "";
  return [unit === "" ? range : `${range}\u202f${unit}`, grid, log === true ? t`logarithmic` : ""].filter((part) => part !== "").join(", ");
}
