import { i18n } from "@lingui/core";
import { plural, t } from "@lingui/core/macro";
import type { Analysis, Configuration, Study, SummarisedObjective } from "./api/client";
import { formatGain, formatGainInterval, formatNumber, formatPercent, formatValue, levelText, unbroken } from "./format";

type Whole = NonNullable<Analysis["verdict"]>;
type Verdict = Pick<Whole, "level" | "code" | "text" | "gain" | "low" | "high" | "rounds" | "disturbed_rounds">;
type Several = Pick<NonNullable<Analysis["pareto_verdict"]>, "level" | "text" | "gain" | "low" | "high"> & { members: readonly unknown[] };
/** A condition under which the numbers of a verdict hold. */
export type Condition = Whole["conditions"][number];

/** Return a verdict in the language of the console, with the word for its level. */
export function verdictText(verdict: Verdict | Several): string {
  const text = sentence(verdict);
  return verdict.level === "proven" ? t`proven: ${text}` : text;
}

/** Return the verdict's sentence by its code and numbers. English readers see the service's own sentence, which says more. */
function sentence(verdict: Verdict | Several): string {
  if (i18n.locale === "en") return unbroken(verdict.text);
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
    case "unstable":
      return t`no gain to use: the configuration is unstable on some nodes`;
    case "check_failed":
      if (verdict.rounds === 0) return t`no measurable gain: nothing was compared with the default`;
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
  if (i18n.locale === "en") return unbroken(text);
  const word = (name: string) => String(values[name]);
  switch (code) {
    case "load":
      return t`${disturbedText({ rounds: Number(values.rounds), disturbed_rounds: Number(values.disturbed) }) ?? ""}: other processes took ${formatPercent(Number(values.share), 0)} of the CPUs`;
    case "live_pairs":
      return t`from ${plural(Number(values.pairs), { one: "# pair of blocks", other: "# pairs of blocks" })} whose order a committed coin has decided, by an interval that is valid at every look`;
    case "live_checked":
      return t`compared again with the settings of the start in ${plural(Number(values.pairs), { one: "# pair", other: "# pairs" })}: ${word("gain")} %`;
    case "live_steps":
      return t`in ${Number(values.steps)} steps, each of which is proven against the settings before it`;
    case "live_in_force":
      return t`in force on ${(values.instances as string[]).join(", ")}`;
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
    case "stable":
      return t`stable on ${word("nodes")} of ${word("nodes")} nodes; a new node may be ${formatPercent(Number(values.limit), 0)} worse with a probability of at most ${formatPercent(Number(values.most), 0)}`;
    case "unstable": {
      const bad = (values.bad as string[]).join(", ");
      return t`unstable: ${formatPercent(Number(values.limit), 0)} worse on some of ${word("nodes")} nodes (${bad}); a new node may be so with a probability of at most ${formatPercent(Number(values.most), 0)}`;
    }
    case "nodes_unknown":
      return t`no node of its runs is known`;
    case "fewer_nodes":
      return t`measured on ${word("nodes")} of ${word("wanted")} nodes that stability.nodes asks for`;
    case "unstable_left_out":
      return t`${plural(Number(values.count), { one: "# configuration was", other: "# configurations were" })} better on average but unstable`;
    default:
      return text;
  }
}

/** Return the advice of a verdict in the language of the console. */
export function adviceText({ advice, advice_data: data }: Pick<Whole, "advice" | "advice_data">): string {
  if (i18n.locale === "en") return unbroken(advice);
  if (data?.code === "all_equal") {
    const { configurations } = data.values as { configurations: number };
    return t`All ${configurations} configurations gave the same result. Has no parameter reached the program? Compare the command lines of two trials, and look whether the program, or a script, sets the value itself.`;
  }
  if (data?.code !== "cpu_time") return advice;
  return t`CPU time is less affected by other processes than wall time: give the metric the type cpu_time in the component file.`;
}

type Effects = NonNullable<Whole["effects"]>;
// Of the names in a sentence, so many are shown.
const MOST_NAMES = 6;

/** Say which changes carry a proven gain. */
export function effectsText({ parameters, smallest, text }: Effects): string {
  if (i18n.locale === "en") return unbroken(text);
  const names = (all: readonly { name: string }[]) => {
    const shown = all.slice(0, MOST_NAMES).map(({ name }) => name).join(", ");
    return all.length > MOST_NAMES ? t`${shown} and ${all.length - MOST_NAMES} more` : shown;
  };
  if (smallest !== null) {
    const kept = parameters.filter(({ name, found }) => smallest.params[name] === found);
    const interval = formatGainInterval({ low: smallest.kept_low, high: smallest.kept_high }) ?? "";
    const count = parameters.length;
    return t`${kept.length} of ${plural(count, { one: "# change", other: "# changes" })} ${plural(kept.length, { one: "keeps", other: "keep" })} ${formatGain(smallest.kept)} of the gain (interval: ${interval}): ${names(kept)}`;
  }
  const [only] = parameters;
  if (only === undefined) return t`The constraints allow nothing between the default and the best configuration.`;
  if (parameters.length === 1) return t`The only change carries the gain: ${only.name}`;
  const matter = parameters.filter(({ low }) => low > 0);
  return matter.length === 0
    ? t`No smaller set of the ${parameters.length} changes was shown to keep the gain.`
    : t`No smaller set of the ${parameters.length} changes was shown to keep the gain. These matter: ${names(matter)}`;
}

type Earlier = Study["space_edits"][number]["trials"];

/** Say how the trials of a study count after an edit of its space. */
export function earlierTrialsText({ total, used, imputed, left_out: left, values }: Omit<Earlier, "text" | "unfinished">): string {
  let found = t`${formatNumber(used)} of ${plural(total, { one: "# trial", other: "# trials" })} ${plural(used, { one: "is used", other: "are used" })}`;
  if (imputed > 0) {
    const given = Object.entries(values).map(([name, value]) => `${name} = ${formatValue(value)}`).join(", ");
    found += `, ${t`${formatNumber(imputed)} of them with ${given} in place of a value that they lack`}`;
  }
  for (const [name, count] of Object.entries(left)) {
    // It stands for a parameter where each value is allowed and a condition or a constraint forbids them together.
    if (name === "constraints") {
      found += `; ${plural(count, { one: "# had a combination that is not allowed now and is left out", other: "# had a combination that is not allowed now and are left out" })}`;
      continue;
    }
    found += `; ${plural(count, { one: `# had another value of ${name} and is left out`, other: `# had another value of ${name} and are left out` })}`;
  }
  return `${found}.`;
}

/** Return the values of a configuration that differ from the default: "n 8, x 0.25". */
export function changesText(params: Configuration, standard: Configuration | undefined): string {
  return Object.entries(params).flatMap(([name, value]) => (value === standard?.[name] ? [] : [`${name} ${formatValue(value)}`])).join(", ");
}
