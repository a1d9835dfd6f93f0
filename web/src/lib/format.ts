import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import { ApiError, type ListedStudy, type ObjectiveProgress, type Scalar, type SummarisedObjective } from "@/lib/api/client";

const MINUS = "\u2212";
const THIN = "\u202f";

/** Return the language of numbers and dates, which is the language of the texts. */
function locale(): string {
  return i18n.locale === "en" ? "en-GB" : i18n.locale;
}

/** Format a number with `digits` significant digits: 1234.5678 → 1,235; 0.00001234 → 1.234e−5. */
export function formatNumber(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-4) {
    const [mantissa = "", exponent = ""] = value.toExponential(digits - 1).split("e");
    return `${formatNumber(Number(mantissa), digits)}e${exponent.replace("+", "").replace("-", MINUS)}`;
  }
  // Digits left of the point are never rounded away, since the number may be a count.
  const whole = Math.floor(Math.log10(size)) + 1;
  return written(value, Math.max(digits, whole, 1), "significant");
}

/** Format a number with exactly `digits` digits after the point, for columns that are compared. */
export function formatFixed(value: number, digits: number): string {
  return written(value, digits, "fraction");
}

// Cached: creating a format costs more than formatting a hundred numbers.
const formats = new Map<string, Intl.NumberFormat>();

/** Format a number in the language of the texts: with at most `digits` significant digits, or exactly `digits` after the point. */
function written(value: number, digits: number, kind: "significant" | "fraction"): string {
  const key = `${locale()} ${kind} ${digits}`;
  const size = kind === "fraction" ? { minimumFractionDigits: digits, maximumFractionDigits: digits } : { maximumSignificantDigits: digits };
  const known = formats.get(key) ?? new Intl.NumberFormat(locale(), size);
  formats.set(key, known);
  return known.format(value).replace("-", MINUS);
}

const SECONDS = new Set(["s", "sec", "second", "seconds"]);
const SMALLER: [number, string][] = [
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

/** Return the unit of a metric: as given, or derived from its name. */
export function unitOf(objective: { metric: string; unit?: string }): string {
  if (objective.unit) return objective.unit;
  return SECONDS.has(objective.metric) ? "s" : "";
}

/** Format a metric's value with its unit; less than a second in ms, µs or ns. */
export function formatMetric(value: number, unit = "", digits = 4): string {
  if (!SECONDS.has(unit)) return unit ? `${formatNumber(value, digits)}${THIN}${unit}` : formatNumber(value, digits);
  const [scale, symbol] = SMALLER.find(([scale]) => Math.abs(value) >= scale) ?? [1, "s"];
  return `${formatNumber(value / scale, digits)}${THIN}${symbol}`;
}

const LARGER: [number, string][] = [
  [2 ** 30, "GiB"],
  [2 ** 20, "MiB"],
  [2 ** 10, "KiB"],
];

/** Format a number of bytes: "1.5 MiB". */
export function formatBytes(bytes: number): string {
  const [scale, symbol] = LARGER.find(([scale]) => bytes >= scale) ?? [1, "B"];
  return `${formatNumber(bytes / scale, 3)}${THIN}${symbol}`;
}

/** Format a parameter's value as a configuration file has it, in any language: people copy it. Fractions have six significant digits. */
export function formatValue(value: Scalar | undefined, unit = ""): string {
  if (value === undefined) return "—";
  const text = typeof value === "number" && !Number.isInteger(value) ? String(Number(value.toPrecision(6))) : String(value);
  return unit === "" ? text : `${text}${THIN}${unit}`;
}

/** Format a gain of 0.1234 as "12.3 %"; a loss with its sign. The service writes gains in the same way (`percent_text`). */
export function formatGain(gain: number): string {
  return formatPercent(gain, 1);
}

/** Format a share of 0.01234 as "1.23 %". Below 10 %, it has the given number of decimals. */
export function formatPercent(share: number, decimals = 2): string {
  const percent = share * 100;
  const size = Math.abs(percent);
  // A share just below 100 % gets more digits (99.98 %), since 100 % would mean that nothing is left.
  const isNear = size < 100 && size >= 99.95;
  const near = isNear ? Math.min(Math.ceil(-Math.log10(100 - size)), 4) : 1;
  const digits = size >= 100 ? 0 : size >= 10 ? near : decimals;
  const sign = percent < 0 && Number(size.toFixed(digits)) !== 0 ? MINUS : "";
  return `${sign}${written(isNear ? Math.min(size, 99.9999) : size, digits, "fraction")}${THIN}%`;
}

/** Keep a number of a sentence on one line with its unit: "24.2 %". */
export function unbroken(sentence: string): string {
  return sentence.replace(/(\d) (%|[nµm]?s|min|h|[KMGT]?i?B)(?![\p{L}\d])/gu, `$1${THIN}$2`);
}

/** Name the component and the application of a study. */
export function tunedText({ component, application }: ListedStudy): string {
  return component === "" ? t`own script` : [component, application].filter(Boolean).join(" / ");
}

/** Name the level of a verdict. */
export function levelText(level: NonNullable<SummarisedObjective["level"]>): string {
  const texts = { proven: t`proven`, provisional: t`provisional`, "no measurable gain": t`no measurable gain`, "not yet known": t`not yet known` };
  return texts[level];
}

/** Format the 95 % interval of a gain: "9 to 15.2 %"; null if it is unknown. */
export function formatGainInterval({ low, high }: { low: number | null; high: number | null }): string | null {
  if (low === null || high === null) return null;
  return t`${formatGain(low).replace(`${THIN}%`, "")} to ${formatGain(high)}`;
}

/** Format a number that is given by its digits; a large one by powers of ten: "1200000000000" → "1.2e12". */
export function formatDigits(digits: string): string {
  return digits.length <= 9 ? formatNumber(Number(digits), 9) : formatNumber(Number(digits), 3);
}

/** Format how many times better the best is than the default: "1.14 ×"; null if the ratio has no meaning. */
export function formatFactor({ goal, default: start, best }: ObjectiveProgress): string | null {
  if (start === null || best === null || start <= 0 || best <= 0) return null;
  return `${formatNumber(goal === "minimize" ? start / best : best / start, 3)}${THIN}×`;
}

/** Format a list: "a, b or c"; as a conjunction "a, b and c". */
export function formatList(texts: string[], type: "disjunction" | "conjunction" = "disjunction"): string {
  return new Intl.ListFormat(locale(), { type }).format(texts);
}

/** Format a duration: "820 ms", "12.3 s", "4 min 5 s", "2 h 3 min". */
export function formatDuration(seconds: number): string {
  if (seconds < 0.9995) return `${seconds > 0 && seconds < 0.0005 ? "< 1" : Math.round(seconds * 1000)}${THIN}ms`;
  if (seconds < 59.5) return `${seconds < 9.95 ? written(seconds, 1, "fraction") : Math.round(seconds)}${THIN}s`;
  const rounded = Math.round(seconds);
  const [hours, minutes] = [Math.floor(rounded / 3600), Math.floor((rounded % 3600) / 60)];
  if (hours === 0) return `${minutes}${THIN}min ${rounded % 60}${THIN}s`;
  if (hours < 48) return `${hours}${THIN}h ${minutes}${THIN}min`;
  return plural(Math.round(hours / 24), { one: "#\u202fday", other: "#\u202fdays" });
}

/** Format how long ago a time was: "just now", "5 min ago", "3 days ago". */
export function formatAgo(time: Date, now: Date): string {
  const seconds = (now.getTime() - time.getTime()) / 1000;
  if (seconds < 10) return t`just now`;
  if (seconds < 60) return t`${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return t`${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return t`${Math.floor(seconds / 3600)} h ago`;
  return plural(Math.floor(seconds / 86400), { one: "# day ago", other: "# days ago" });
}

/** Format a time in the viewer's time zone. */
export function formatTime(time: Date): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "long" }).format(time);
}

/** Format the day of a time in the viewer's time zone. */
export function formatDay(time: Date): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium" }).format(time);
}

/**
 * Return the durations that the service allows, from its refusal of one, in the unit of the field: "more than 1.09m, at most 52m".
 * Undefined if the error is about something else.
 */
export function writtenTimes(error: Error | null, { symbol, seconds }: { symbol: string; seconds: number }): string | undefined {
  if (!(error instanceof ApiError)) return undefined;
  const { above, at_most: most } = error.data;
  if (typeof above !== "number") return undefined;
  // Rounded towards values that are certainly allowed.
  const low = `${formatNumber(Math.ceil((100 * above) / seconds) / 100, 6)}${symbol}`;
  if (typeof most !== "number") return t`more than ${low}`;
  const high = `${formatNumber(Math.floor((100 * most) / seconds) / 100, 6)}${symbol}`;
  return t`more than ${low}, at most ${high}`;
}

/** Format the number of configurations of a space that can be counted, and how many of them the constraints leave. */
export function formatSpace({ size, feasible }: { size: string; feasible: string | null }): string {
  if (feasible === null) return formatConfigurations(size);
  const left = formatDigits(feasible);
  const whole = formatConfigurations(size);
  return t`${left} of ${whole}`;
}

/** Format a number of configurations that is given as text, since it may exceed the range of numbers. */
export function formatConfigurations(size: string): string {
  const digits = formatDigits(size);
  return plural(Number(size), { one: `${digits} configuration`, other: `${digits} configurations` });
}
