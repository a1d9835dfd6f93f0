import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

export const componentsQuery = queryOptions({
  queryKey: ["components"],
  queryFn: () => unwrap(api.GET("/api/v1/components")),
  staleTime: 5000,
  refetchInterval: 60_000,
});

export function componentQuery(name: string) {
  return queryOptions({
    queryKey: ["components", name],
    queryFn: () => unwrap(api.GET("/api/v1/components/{name}", { params: { path: { name } } })),
    staleTime: 5000,
    refetchInterval: 60_000,
  });
}

/** A version of a component's file that was written in the console. It never changes. */
export function fileQuery(name: string, number: number) {
  return queryOptions({
    queryKey: ["component-file", name, number],
    queryFn: () => unwrap(api.GET("/api/v1/components/{name}/files/{number}", { params: { path: { name, number } } })),
    staleTime: Infinity,
  });
}

/** The problems of a component file, as far as they can be found without a cluster. */
export function checkQuery(text: string) {
  return queryOptions({
    queryKey: ["component-check", text],
    queryFn: ({ signal }) => unwrap(api.POST("/api/v1/component-checks", { body: { text }, signal })),
    staleTime: Infinity,
    gcTime: 60_000,
    placeholderData: keepPreviousData,
  });
}

/** Save a new version. `after`: the newest version that the user has seen. */
export function useWriteComponent(after: number) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (text: string) => unwrap(api.POST("/api/v1/components", { body: { text, after } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["components"] }),
  });
}

/** Delete all versions that were written in the console. Installed versions stay on their clusters. */
export function useDeleteFiles(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/v1/components/{name}/files", { params: { path: { name } } })),
    onSuccess: () => {
      queries.removeQueries({ queryKey: ["component-file", name] });
      return queries.invalidateQueries({ queryKey: ["components"] });
    },
  });
}
