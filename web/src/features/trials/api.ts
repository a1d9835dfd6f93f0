import { keepPreviousData, queryOptions, useMutation } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

/** A trial with its measurements and log, asked for again when its revision changes. */
export function trialQuery(study: string, number: number, revision: number) {
  return queryOptions({
    queryKey: ["trial", study, number, revision],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/trials/{number}", { params: { path: { name: study, number } } })),
    placeholderData: keepPreviousData,
  });
}

export function useStopTrial(study: string, number: number) {
  return useMutation({
    mutationFn: () =>
      unwrap(
        api.POST("/api/v1/studies/{name}/trials/{number}/stop", {
          params: { path: { name: study, number } },
          body: { reason: "Stopped from the console." },
        }),
      ),
  });
}
