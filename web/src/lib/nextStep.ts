import type { Analysis, Study } from "./api/client";

/**
 * What a user does next with a study's result. `use`: take the proven configuration. `choose`: take one of several proven trade-offs.
 * `check`: run a final check, since the gain is not proven. `repeat`: the timings were disturbed, so run it again on a quiet machine.
 * `search`: there is no gain, so search further. `wait`: the study is still at work. `none`: there is no result.
 */
export type NextStep = "use" | "choose" | "check" | "repeat" | "search" | "wait" | "none";

type Result = Pick<Analysis, "best" | "verdict" | "pareto_verdict" | "default">;

/** Return the next step that the verdict of a study suggests. */
export function nextStep({ best, verdict, pareto_verdict: several, default: standard }: Result, study: Pick<Study, "state" | "search_end_reason">): NextStep {
  if (study.state === "ACTIVE" || study.state === "PAUSED") return verdict?.level === "proven" || several?.level === "proven" ? (several ? "choose" : "use") : "wait";
  if (best.length === 0) return "none";
  const known = verdict ?? several;
  if (known?.level === "proven") return several === null ? "use" : "choose";
  if (verdict?.code === "disturbed" || (known !== null && 2 * known.doubtful > known.measured)) return "repeat";
  if (known?.level === "no measurable gain") return "search";
  // The default is the only result, so a check would compare it with itself.
  if (several === null && best.length === 1 && best[0]?.numbers[0] === standard?.numbers[0]) return "search";
  return study.state === "COMPLETED" ? "check" : "none";
}
