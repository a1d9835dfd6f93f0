import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import type { components } from "@/lib/api/_gen/schema";
import { api, unwrap } from "@/lib/api/client";

/** Where a batch script has a value that could be tuned. */
export type Place = components["schemas"]["Place"];

/** The values in a batch script, and the script in which these variables come from the environment. Nothing is stored. */
export function scriptQuery(text: string, variables: readonly string[] = []) {
  return queryOptions({
    queryKey: ["batch-script", text, variables],
    queryFn: ({ signal }) => unwrap(api.POST("/api/v1/batch-scripts", { body: { text, variables: [...variables] }, signal })),
    staleTime: Infinity,
    gcTime: 60_000,
    placeholderData: keepPreviousData,
  });
}
