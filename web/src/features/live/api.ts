import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap, type LiveBoard, type LiveStatus } from "@/lib/api/client";

/** The live studies, and the state of one of them: of the first one without a name. Agents report each second. */
export function liveQuery(study: string) {
  return queryOptions({
    queryKey: ["live", study],
    queryFn: () => unwrap(api.GET("/api/v1/live", { params: { query: { study } } })),
    refetchInterval: 2000,
    placeholderData: keepPreviousData,
  });
}

/** A change of a live study. Its answer is the new state, which the page shows at once. */
function useLiveChange<T>(name: string, change: (value: T) => Promise<LiveStatus>) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: (shown) => {
      for (const key of [name, ""]) {
        queries.setQueryData<LiveBoard>(liveQuery(key).queryKey, (before) => (before?.shown?.study === shown.study ? { ...before, shown } : before));
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["live"] }),
  });
}

/** End what runs, pause the study, and put the settings before its first trial back. */
export function useStopLive(name: string) {
  return useLiveChange(name, ({ reason, leaveKept }: { reason: string; leaveKept: boolean }) =>
    unwrap(api.POST("/api/v1/studies/{name}/live/stop", { params: { path: { name } }, body: { reason, leave_kept: leaveKept } })),
  );
}

/** Approve or decline the plan of a trial. */
export function useDecide(name: string, number: number) {
  const params = { path: { name, number } };
  return useLiveChange(name, ({ approve, reason }: { approve: boolean; reason: string }) =>
    unwrap(
      approve
        ? api.POST("/api/v1/studies/{name}/trials/{number}/approve", { params, body: { reason } })
        : api.POST("/api/v1/studies/{name}/trials/{number}/decline", { params, body: { reason } }),
    ),
  );
}
