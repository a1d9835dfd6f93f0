import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

export const agentsQuery = queryOptions({
  queryKey: ["agents"],
  queryFn: () => unwrap(api.GET("/api/v1/agents")),
  // Changes are told by a stream (app/useLiveLists.ts), but for that an agent is not heard of any more.
  refetchInterval: 15_000,
});

/** A change of an agent; the list is asked for again, whatever came of it. */
function useAgentChange<T>(change: (value: T) => Promise<unknown>) {
  const queries = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => queries.invalidateQueries({ queryKey: ["agents"] }) });
}

/** Have an agent take no more trials, or take some again. */
export function useDrain(agent_id: string) {
  return useAgentChange((draining: boolean) =>
    unwrap(api.PATCH("/api/v1/agents/{agent_id}", { params: { path: { agent_id } }, body: { draining } })),
  );
}

/** End every credential of an agent: it has to be enrolled anew. */
export function useRevoke(agent_id: string) {
  return useAgentChange(() => unwrap(api.DELETE("/api/v1/agents/{agent_id}/credentials", { params: { path: { agent_id } } })));
}

/** Remove an agent that is gone for good from the list. */
export function useForget(agent_id: string) {
  return useAgentChange(() => unwrap(api.DELETE("/api/v1/agents/{agent_id}", { params: { path: { agent_id } } })));
}

/** A token with which one agent enrols, once. */
export function useEnrolment() {
  return useMutation({ mutationFn: (minutes: number) => unwrap(api.POST("/api/v1/enrolments", { body: { minutes } })) });
}
