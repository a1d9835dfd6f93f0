import { i18n } from "@lingui/core";
import { t } from "@lingui/core/macro";
import type { Analysis } from "./api/client";
import { formatGain, formatGainInterval } from "./format";

type Verdict = Pick<NonNullable<Analysis["verdict"]>, "level" | "code" | "text" | "gain" | "low" | "high">;
type Several = Pick<NonNullable<Analysis["pareto_verdict"]>, "level" | "text" | "gain" | "low" | "high"> & { members: readonly unknown[] };

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
    return `${t`no measurable gain in every objective at once: hypervolume`}${ends}`;
  }
  switch (verdict.code) {
    case "better": {
      const better = `${t`better by ${gain === null ? "" : formatGain(gain)}`}${level === "proven" && verdict.low === verdict.high ? "" : ends}`;
      return level === "provisional" ? t`provisional: ${better}` : better;
    }
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
    case "check_failed":
      return t`no measurable gain: too few trials of the final check worked`;
    default:
      // A newer service may have further codes.
      return verdict.text;
  }
}
