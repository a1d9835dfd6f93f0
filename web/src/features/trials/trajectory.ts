import type { Objective, Trial } from "@/lib/api/client";
import { present, type EditedSpace } from "@/lib/space";

/** A trial's number and its value. */
export type Point = [number: number, value: number];

export interface Trajectory {
  completed: Point[];
  /** The best value among the completed trials inside the space, at each number at which it changed and at the last trial. */
  best: Point[];
  /** Pruned trials with their last known values. */
  pruned: Point[];
  infeasible: number[];
  failed: number[];
}

/** Return the trajectory of one objective. `trials` is sorted by number; some may lie outside of the present space. */
export function trajectory(trials: Trial[], { metric, goal }: Pick<Objective, "metric" | "goal">, space?: EditedSpace): Trajectory {
  const result: Trajectory = { completed: [], best: [], pruned: [], infeasible: [], failed: [] };
  let best: number | null = null;
  for (const { number, state, metrics, params } of trials) {
    const value = metrics?.[metric];
    if (state === "INFEASIBLE") result.infeasible.push(number);
    else if (state === "FAILED") result.failed.push(number);
    else if (value === undefined) continue;
    else if (state === "PRUNED") result.pruned.push([number, value]);
    else if (state === "COMPLETED") {
      result.completed.push([number, value]);
      if ((best === null || (goal === "minimize" ? value < best : value > best)) && (space === undefined || present(space, params) !== null)) {
        best = value;
        result.best.push([number, value]);
      }
    }
  }
  const last = trials.at(-1);
  if (best !== null && last !== undefined && result.best.at(-1)?.[0] !== last.number) result.best.push([last.number, best]);
  return result;
}
