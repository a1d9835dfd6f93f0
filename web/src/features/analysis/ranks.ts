import type { Objective } from "@/lib/api/client";

/** Return the rank of each value from 0 (the best) to 1 (the worst). Equal values share the mean of their ranks. */
export function ranksOf(values: readonly number[], goal: Objective["goal"]): number[] {
  const sign = goal === "minimize" ? 1 : -1;
  const order = values.map((_, index) => index).sort((a, b) => sign * ((values[a] ?? NaN) - (values[b] ?? NaN)));
  const ranks = new Array<number>(values.length).fill(0);
  const most = Math.max(values.length - 1, 1);
  for (let first = 0; first < order.length; ) {
    let end = first + 1;
    while (end < order.length && values[order[end] ?? 0] === values[order[first] ?? 0]) end += 1;
    for (const index of order.slice(first, end)) ranks[index] = (first + end - 1) / 2 / most;
    first = end;
  }
  return ranks;
}
