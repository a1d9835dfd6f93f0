import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ApiError, unwrap, type StudySpec } from "@/lib/api/client";

export const methodsQuery = queryOptions({
  queryKey: ["methods"],
  queryFn: () => unwrap(api.GET("/api/v1/methods")),
  staleTime: Infinity,
});

/** What a study of this specification would do; asked for again when the specification changes. */
export function planQuery(spec: StudySpec) {
  return queryOptions({
    queryKey: ["plan", spec],
    queryFn: () => unwrap(api.POST("/api/v1/plans", { body: { spec } })),
    placeholderData: keepPreviousData,
    gcTime: 30_000,
    refetchInterval: 15_000,
    retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.status === 0),
  });
}

export function useCreateStudy() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, spec, tags, request_id }: { name: string; spec: StudySpec; tags: string[]; request_id: string }) =>
      unwrap(api.POST("/api/v1/studies", { body: { name, spec, tags, request_id, load_if_exists: false } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}
