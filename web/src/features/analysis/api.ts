import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

/**
 * What a worker has found out about a study, asked for again when `finished` (trials), `space` (its version) or `created`
 * (another study of this name) changes, and each second while the worker is at it.
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
