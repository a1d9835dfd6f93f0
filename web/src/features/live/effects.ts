import type { LiveInstance, LiveLook } from "@/lib/api/client";

export type Goal = "minimize" | "maximize";

/** Return the change of the objective in percent that a logarithm of its ratio stands for. */
export function percentOf(log: number): number {
  return 100 * Math.expm1(log);
}

/** Return what an interval says of an effect. */
export function judge(low: number | null, high: number | null, goal: Goal): "better" | "worse" | "open" {
  const [best, worst] = goal === "minimize" ? [low, high] : [high, low];
  const sign = goal === "minimize" ? 1 : -1;
  if (worst !== null && sign * worst < 0) return "better";
  return best !== null && sign * best > 0 ? "worse" : "open";
}

/** Return the logarithm of the ratio from which on a gain is worth keeping. */
export function worthOf(minGain: number, goal: Goal): number {
  return goal === "minimize" ? Math.log1p(-minGain) : Math.log1p(minGain);
}

/** The running trial of a study, as the instance shows it that has its pairs. */
export interface Experiment {
  trial: number | null;
  looks: LiveLook[];
  pairs: number;
}

/** Return the trial that runs now; null if there is none. */
export function experimentOf(instances: readonly LiveInstance[]): Experiment | null {
  const running = instances.filter(({ state }) => state === "running");
  const [first] = [...running].sort((one, other) => other.pairs - one.pairs || other.looks.length - one.looks.length);
  return first === undefined ? null : { trial: first.trial, looks: first.looks, pairs: first.pairs };
}

/** Return the numbers of the pairs that looks stand for: the service has the latest ones. */
export function numbersOf({ looks, pairs }: Pick<Experiment, "looks" | "pairs">): number[] {
  return looks.map((_, place) => Math.max(pairs, looks.length) - looks.length + place + 1);
}

/** Return the ends of the axis of changes in percent: all pairs, and what is known of the interval, with a margin. */
export function extentOf(looks: readonly LiveLook[], worth: number): { min: number; max: number } {
  const logs = looks.flatMap(({ value, effect, low, high }) => [value, effect, ...(low !== null && high !== null ? [low, high] : [])]);
  const shown = [0, worth, ...logs].map(percentOf);
  const [least, most] = [Math.min(...shown), Math.max(...shown)];
  const margin = Math.max(0.08 * (most - least), 0.5);
  return { min: Math.floor(least - margin), max: Math.ceil(most + margin) };
}
