import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import type { Analysis, Configuration, SummarisedObjective } from "./api/client";
import { formatGain, formatGainInterval, formatPercent, formatValue, levelText } from "./format";

type Whole = NonNullable<Analysis["verdict"]>;
type Verdict = Pick<Whole, "level" | "code" | "text" | "gain" | "low" | "high" | "rounds" | "disturbed_rounds">;
type Several = Pick<NonNullable<Analysis["pareto_verdict"]>, "level" | "text" | "gain" | "low" | "high"> & { members: readonly unknown[] };
type Condition = Whole["conditions"][number];

/** Return a verdict in the language of the console, with the word for its level. */
export function verdictText(verdict: Verdict | Several): string {
  const text = sentence(verdict);
  return verdict.level === "proven" ? t`proven: ${text}` : text;
}

/** Return the verdict's sentence by its code and numbers. English readers see the service's own sentence, which says more. */
function sentence(verdict: Verdict | Several): string {
  if (i18n.locale === "en") return verdict.text;
  const { level, gain } = verdict;
  const interval = formatGainInterval(verdict);
  const ends = interval === null ? "" : ` (${t`interval: ${interval}`})`;
  if ("members" in verdict) {
    if (level === "not yet known") return t`not yet known: too few trials of the final check worked`;
    if (verdict.members.length === 0) return t`no measurable gain: the default is the best in every objective`;
    if (gain === null) return t`no gain to use: in the final check, all members of the Pareto set broke an outcome constraint`;
    if (level === "proven") return `${t`better in every objective: hypervolume ${formatGain(gain)}`}${ends}`;
    if (level === "provisional") return `${t`better in every objective: hypervolume ${formatGain(gain)}`}${ends}; ${t`not proven for a quiet machine`}`;
    return `${t`no measurable gain in every objective at once: hypervolume`}${ends}`;
  }
  switch (verdict.code) {
    case "better": {
      const better = `${t`better by ${gain === null ? "" : formatGain(gain)}`}${level === "proven" && verdict.low === verdict.high ? "" : ends}`;
      if (level === "provisional") return t`provisional: ${better}`;
      return [better, disturbedText(verdict)].filter(Boolean).join("; ");
    }
    case "disturbed":
      return `${t`better by ${gain === null ? "" : formatGain(gain)}`}${ends}; ${disturbedText(verdict) ?? ""}; ${t`not proven for a quiet machine`}`;
    case "not_better":
      return `${t`no measurable gain`}${ends}`;
    case "worse":
      return `${t`the default is better`}${ends}`;
    case "default_best":
      return t`no measurable gain: the default is the best so far`;
    case "default_unmeasured":
      return t`not yet known: the default was not measured`;
    case "unrepeated":
      return t`not yet known: too few measurements were repeated to know the noise`;
    case "breaks_constraint":
      return t`no gain to use: runs of the final check broke an outcome constraint`;
    case "fails":
      return t`no gain to use: the best configuration failed in the final check`;
    case "check_failed":
      return t`no measurable gain: too few trials of the final check worked`;
    default:
      // A newer service may have further codes.
      return verdict.text;
  }
}

/** Say how many rounds of the final check other processes have disturbed; null if there is none. */
export function disturbedText({ rounds, disturbed_rounds: disturbed }: Pick<SummarisedObjective, "rounds" | "disturbed_rounds">): string | null {
  if (!rounds || !disturbed) return null;
  return t`${disturbed} of ${plural(rounds, { one: "# round was disturbed", other: "# rounds were disturbed" })}`;
}

/** Name the level of a verdict in a list, with a word on what has disturbed it, and on what was injected. */
export function listedLevelText(objective: Pick<SummarisedObjective, "level" | "rounds" | "disturbed_rounds" | "conditions">): string {
  const injected = objective.conditions.filter(({ code }) => code === "injected").map(conditionText);
  return [objective.level ? levelText(objective.level) : null, disturbedText(objective), ...injected].filter(Boolean).join(", ");
}

/** Return a condition of a verdict in the language of the console. */
export function conditionText({ text, code, values }: Condition): string {
  if (i18n.locale === "en") return text;
  const word = (name: string) => String(values[name]);
  switch (code) {
    case "load":
      return t`${disturbedText({ rounds: Number(values.rounds), disturbed_rounds: Number(values.disturbed) }) ?? ""}: other processes took ${formatPercent(Number(values.share), 0)} of the CPUs`;
    case "injected":
      return t`under injected ${word("text")}`;
    case "limit":
      return t`keeps ${word("constraint")} in ${word("kept")} of ${plural(Number(values.runs), { one: "# run", other: "# runs" })}`;
    case "machine":
      return t`on ${word("machine")}`;
    case "machines": {
      const machines = values.machines as string[];
      return t`on ${plural(machines.length, { one: "# kind of machine", other: "# kinds of machines" })}: ${machines.join("; ")}`;
    }
    default:
      return text;
  }
}

/** Return the advice for a disturbed measurement in the language of the console. */
export function adviceText({ advice, advice_data: data }: Pick<Whole, "advice" | "advice_data">): string {
  if (i18n.locale === "en" || data?.code !== "cpu_time") return advice;
  return t`CPU time is less affected by other processes than wall time: give the metric the type cpu_time in the component file.`;
}

/** Return the values of a configuration that differ from the default: "n 8, x 0.25". */
export function changesText(params: Configuration, standard: Configuration | undefined): string {
  return Object.entries(params).flatMap(([name, value]) => (value === standard?.[name] ? [] : [`${name} ${formatValue(value)}`])).join(", ");
}
