import type { Analysis, Measured, Objective, ObjectiveProgress } from "@/lib/api/client";
import { isSame } from "@/lib/space";

/** Return the member of the front with this first trial; without one, that to which the numbers of the analysis belong. */
export function pointOf({ best, configuration }: Analysis, number: number | undefined): Measured | undefined {
  return best.find(({ numbers }) => numbers[0] === number) ?? best.find(({ params }) => isSame(params, configuration)) ?? best[0];
}

/**
 * Return what one configuration gains in each objective, all in numbers of this configuration: those of the final check if it has
 * measured it, those of the analysis if they are of it, and otherwise estimates from its measurements.
 */
export function gainsOf(analysis: Analysis, point: Measured, objectives: readonly Objective[]): ObjectiveProgress[] {
  const member = analysis.pareto_verdict?.members.find(({ params }) => isSame(params, point.params));
  const isOwn = isSame(point.params, analysis.configuration);
  return analysis.objectives.map((own) => {
    const checked = member?.objectives.find(({ metric }) => metric === own.metric);
    if (checked?.gain != null) return { ...own, best: checked.value ?? own.best, gain: checked.gain, gain_low: checked.low, gain_high: checked.high };
    if (isOwn) return own;
    const best = point.metrics[own.metric] ?? null;
    const sign = objectives.find(({ metric }) => metric === own.metric)?.goal === "maximize" ? 1 : -1;
    const gain = best === null || own.default === null || own.default === 0 ? null : (sign * (best - own.default)) / Math.abs(own.default);
    return { ...own, best, gain, gain_low: null, gain_high: null };
  });
}
