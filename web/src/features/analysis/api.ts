import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, unwrap, type Insight } from "@/lib/api/client";

/**
 * The insight that a worker has computed for a study. It is fetched again when `finished` (trials), `space` (its version) or `created`
 * (another study of this name) changes, and every second while a worker computes it.
 */
export function insightQuery(name: string, created: string, finished: number, space: number) {
  return queryOptions({
    queryKey: ["insight", name, created, finished, space],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/insight", { params: { path: { name } } })),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.computing ? 1000 : false),
    gcTime: 10_000,
  });
}

/** A part of an insight: it is there, a worker computes it, or the computation has failed. */
export type Part = "there" | "awaited" | "failed";

/** Return the state of a part of an insight. */
export function partOf(insight: Insight | undefined, part: "forest" | "process"): Part {
  if (insight === undefined) return "awaited";
  const { data, computing } = insight;
  if (data !== null && !(data.missing ?? []).includes(part)) return "there";
  return computing ? "awaited" : "failed";
}
