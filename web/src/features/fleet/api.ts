import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

export const agentsQuery = queryOptions({
  queryKey: ["agents"],
  queryFn: () => unwrap(api.GET("/api/v1/agents")),
  // A stream reports changes (app/useLiveLists.ts), except that an agent has gone silent.
  refetchInterval: 15_000,
});

/** A change of an agent. The list is fetched again after success and failure. */
function useAgentChange<T>(change: (value: T) => Promise<unknown>) {
  const queries = useQueryClient();
  return useMutation({ mutationFn: change, onSettled: () => queries.invalidateQueries({ queryKey: ["agents"] }) });
}

/** Make an agent accept no more trials, or accept trials again. */
export function useDrain(agent_id: string) {
  return useAgentChange((draining: boolean) =>
    unwrap(api.PATCH("/api/v1/agents/{agent_id}", { params: { path: { agent_id } }, body: { draining } })),
  );
}

/** Revoke every credential of an agent, which then has to be enrolled again. */
export function useRevoke(agent_id: string) {
  return useAgentChange(() => unwrap(api.DELETE("/api/v1/agents/{agent_id}/credentials", { params: { path: { agent_id } } })));
}

/** Remove an offline agent from the list. */
export function useForget(agent_id: string) {
  return useAgentChange(() => unwrap(api.DELETE("/api/v1/agents/{agent_id}", { params: { path: { agent_id } } })));
}

/** Create a token that enrols one agent, once. */
export function useEnrolment() {
  return useMutation({ mutationFn: (minutes: number) => unwrap(api.POST("/api/v1/enrolments", { body: { minutes } })) });
}

/** Ask an agent to install, update or remove a component that ships with it. */
export function useOrder(agent_id: string) {
  return useAgentChange((body: { component: string; action: "install" | "remove" }) =>
    unwrap(api.POST("/api/v1/agents/{agent_id}/components", { params: { path: { agent_id } }, body })),
  );
}
