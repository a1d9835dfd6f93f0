import { t } from "@lingui/core/macro";
import { quoted } from "@/lib/words";
import type { Place } from "./api";

/** A place that the user has chosen, with the values to try. */
export interface Choice {
  place: Place;
  /** MIN..MAX, or values with commas between them. */
  values: string;
  /** The value of the script as it is. */
  start: string;
}

export interface Metric {
  name: string;
  /** A regular expression with one group, for the job's output; null for the running time. */
  pattern: string | null;
  goal: "minimize" | "maximize";
}

export interface Plan {
  file: string;
  choices: readonly Choice[];
  metric: Metric;
  trials: number;
  parallel: number;
}

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Return the command that tunes the batch script with the user's own jobs. */
export function tuneCommand({ file, choices, metric, trials, parallel }: Plan): string {
  // "$1" is the first of the arguments in the order of --param.
  const ordered = [...choices].sort((a, b) => argumentOf(a) - argumentOf(b));
  const lines = ordered.flatMap(({ place, values, start }) => {
    const first = values.split(",")[0]?.trim() ?? "";
    const suffix = start === "" || (!values.includes("..") && start === first) ? "" : `:${start}`;
    const listed = values.split(",").map((one) => one.trim()).join(",");
    return [`--param ${quoted(`${place.name}=${listed}${suffix}`)}`, ...passed(place)];
  });
  // eslint-disable-next-line lingui/no-unlocalized-strings -- an option
  const read = metric.pattern === null ? [] : [`--metric ${quoted(`${metric.name}=regex:${metric.pattern}`)}`];
  const goal = metric.pattern === null || metric.goal === "minimize" ? [] : [`--maximize ${quoted(metric.name)}`];
  const jobs = [`--trials ${trials}`, ...(parallel === 1 ? [] : [`--parallel ${parallel}`])];
  return [`trimtab tune-sbatch ${quoted(file)}`, ...lines, ...read, ...goal, ...jobs].join(" \\\n    ");
}

/** Return values around the present one, for a start; "" if the script does not have one. */
export function proposed(value: string): string {
  if (/^[1-9]\d*$/.test(value)) return `${Math.max(1, Math.floor(Number(value) / 4))}..${Number(value) * 4}`;
  if (NUMBER.test(value) && Number(value) > 0) return `${Number(value) / 4}..${Number(value) * 4}`;
  return value;
}

/** Return why the command would refuse the values; undefined if it takes them. */
export function faultOf({ values, start }: Choice): string | undefined {
  const text = values.trim();
  if (text.includes("..")) {
    const [least = "", most = "", ...more] = text.split("..").map((one) => one.trim());
    if (more.length > 0 || !NUMBER.test(least) || !NUMBER.test(most)) return t`Enter two numbers with two dots between them, such as ${"1..16"}.`;
    if (Number(least) >= Number(most)) return t`The first number of a range must be smaller than the second.`;
    if (start === "") return undefined;
    if (!NUMBER.test(start)) return t`${start} is no number. Enter a number as the present value, or values with commas.`;
    return Number(start) < Number(least) || Number(start) > Number(most) ? t`The present value ${start} is not in the range.` : undefined;
  }
  const listed = text.split(",").map((one) => one.trim());
  if (listed.length < 2 || listed.includes("")) return t`Enter a range such as ${"1..16"}, or at least two values with commas between them.`;
  if (new Set(listed).size < listed.length) return t`Enter each value once.`;
  if (listed.some((one) => one.includes(":"))) return t`A value must have no colon.`;
  return start === "" || listed.includes(start) ? undefined : t`The present value ${start} is not among the values.`;
}

/** Return the first argument of the script that is not chosen although a later one is; undefined if there is none. */
export function missingArgument(choices: readonly Choice[]): number | undefined {
  const chosen = new Set(choices.filter(({ place }) => place.kind === "argument").map(argumentOf));
  for (let number = 1; number <= Math.max(0, ...chosen); number += 1) if (!chosen.has(number)) return number;
  return undefined;
}

function argumentOf({ place }: Choice): number {
  return place.kind === "argument" ? Number(place.target) : 0;
}

/* eslint-disable lingui/no-unlocalized-strings -- options of a command */
function passed({ name, kind, target }: Place): string[] {
  if (kind === "option") return [`--pass ${quoted(`${name}=option:--${target}={value}`)}`];
  if (kind === "argument") return [`--pass ${quoted(`${name}=argument`)}`];
  return name === target ? [] : [`--pass ${quoted(`${name}=env:${target}`)}`];
}
