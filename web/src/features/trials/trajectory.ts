import type { Objective, Trial } from "@/lib/api/client";
import { present, type EditedSpace } from "@/lib/space";

/** What the horizontal axis shows: the numbers of trials, or the times at which they ended. */
export type Across = "number" | "time";

/** A trial's place on the horizontal axis, its value, and its number. */
export type Point = [place: number, value: number, number: number];

export interface Trajectory {
  /** Completed trials, without the doubtful ones, those that break an outcome constraint, and the recommended ones. */
  completed: Point[];
  /** Completed trials with a doubtful timing. */
  doubtful: Point[];
  /** Completed trials that break an outcome constraint. */
  breaking: Point[];
  /** Completed trials of the recommended configuration. */
  recommended: Point[];
  /** The best value among the completed trials inside the space that break no outcome constraint, at each place at which it changed and at the last trial; empty with a context, because values of several contexts cannot be compared. */
  best: Point[];
  /** Pruned trials with their last known values. */
  pruned: Point[];
  /** Completed trials with a penalty in place of a measurement. They have no place on the vertical axis. */
  penalised: Point[];
  /** Trials without a value. */
  infeasible: Point[];
  failed: Point[];
  /** The first and the last place of each final check. */
  checks: [from: number, to: number][];
}

export interface Shown {
  across: Across;
  /** Numbers of the trials that measured the recommended configuration. */
  best: ReadonlySet<number>;
  /** Numbers of the trials with a penalty in place of a measurement. */
  penalties?: ReadonlySet<number>;
  /** The study whose space counts. Without it, all trials are inside. */
  space?: EditedSpace | undefined;
  /** Numbers of the trials that are drawn as points; null: all. The best value so far always considers all trials. */
  drawn?: ReadonlySet<number> | null | undefined;
}

/** Return the trajectory of one objective. `trials` is sorted by number; some may lie outside of the present space. */
export function trajectory(trials: readonly Trial[], { metric, goal }: Pick<Objective, "metric" | "goal">, { across, best: leaders, penalties = new Set(), space, drawn = null }: Shown): Trajectory {
  const result: Trajectory = { completed: [], doubtful: [], breaking: [], recommended: [], best: [], pruned: [], penalised: [], infeasible: [], failed: [], checks: [] };
  const placed = trials.map((trial) => ({ trial, place: placeOf(trial, across) }));
  if (across === "time") placed.sort((a, b) => a.place - b.place || a.trial.number - b.trial.number);
  const comparable = (space?.spec.context ?? []).length === 0;
  let best: number | null = null;
  let inCheck = false;
  for (const { trial, place } of placed) {
    const { number, state, metrics, params, origin, doubt, breaks } = trial;
    const isCheck = origin === "check";
    const current = result.checks.at(-1);
    if (isCheck && inCheck && current !== undefined) current[1] = place;
    else if (isCheck) result.checks.push([place, place]);
    inCheck = isCheck;
    const value = metrics?.[metric];
    const shown = drawn === null || drawn.has(number) || leaders.has(number);
    if (state === "INFEASIBLE" || state === "FAILED") {
      if (shown) (state === "FAILED" ? result.failed : result.infeasible).push([place, 0, number]);
    } else if (value === undefined) continue;
    else if (state === "PRUNED") {
      if (shown) result.pruned.push([place, value, number]);
    } else if (penalties.has(number)) {
      if (shown) result.penalised.push([place, 0, number]);
    } else if (state === "COMPLETED") {
      const points = breaks !== null ? result.breaking : leaders.has(number) ? result.recommended : doubt !== "" ? result.doubtful : result.completed;
      if (shown) points.push([place, value, number]);
      if (comparable && breaks === null && (best === null || (goal === "minimize" ? value < best : value > best)) && (space === undefined || present(space, params) !== null)) {
        best = value;
        result.best.push([place, value, number]);
      }
    }
  }
  const last = placed.at(-1);
  if (best !== null && last !== undefined && result.best.at(-1)?.[0] !== last.place) result.best.push([last.place, best, result.best.at(-1)?.[2] ?? last.trial.number]);
  return result;
}

function placeOf({ number, finished_at, started_at, created_at }: Trial, across: Across): number {
  return across === "number" ? number : Date.parse(finished_at ?? started_at ?? created_at);
}

/**
 * Return the numbers of the trials to draw for a study that has sent a sample: at most one in each interval of numbers, so that trials
 * which arrived after the sample are not denser than it. All trials of `near`, which the user has zoomed into, are drawn.
 */
export function thinned(trials: readonly Trial[], total: number, most: number, near: readonly Trial[]): Set<number> {
  // The intervals of the service's sample.
  const share = Math.min(most / total, 1);
  const [first, last] = [near[0]?.number ?? Infinity, near.at(-1)?.number ?? -Infinity];
  const taken = new Set<number>();
  const drawn = new Set(near.map(({ number }) => number));
  for (const { number, state } of trials) {
    const interval = Math.floor((number - 1) * share);
    if (state === "REQUESTED" || state === "ACTIVE" || taken.has(interval) || (number >= first && number <= last)) continue;
    taken.add(interval);
    drawn.add(number);
  }
  return drawn;
}
