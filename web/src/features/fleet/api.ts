import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

export const agentsQuery = queryOptions({
  queryKey: ["agents"],
  queryFn: () => unwrap(api.GET("/api/v1/agents")),
  refetchInterval: 5000,
});
