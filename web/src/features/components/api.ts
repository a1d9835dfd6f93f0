import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

export const componentsQuery = queryOptions({
  queryKey: ["components"],
  queryFn: () => unwrap(api.GET("/api/v1/components")),
  staleTime: 5000,
  refetchInterval: 15_000,
});

export function componentQuery(name: string) {
  return queryOptions({
    queryKey: ["components", name],
    queryFn: () => unwrap(api.GET("/api/v1/components/{name}", { params: { path: { name } } })),
    staleTime: 5000,
    refetchInterval: 30_000,
  });
}
