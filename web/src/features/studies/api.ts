import { infiniteQueryOptions, keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap, type StudyState } from "@/lib/api/client";

export interface StudyFilter {
  name_prefix: string;
  state: StudyState[];
}

const PAGE = 50;

export function studiesQuery(filter: StudyFilter) {
  return infiniteQueryOptions({
    queryKey: ["studies", filter],
    queryFn: ({ pageParam }) =>
      unwrap(api.GET("/api/v1/studies", { params: { query: { ...filter, progress: true, page_size: PAGE, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token || undefined,
    placeholderData: keepPreviousData,
    refetchInterval: 5000,
  });
}

export function studyQuery(name: string) {
  return queryOptions({
    queryKey: ["study", name],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}", { params: { path: { name } } })),
    retry: false,
  });
}

/** The analysis of a study, asked for again when `finished` (trials), `state` or `created` (another study of this name) changes. */
export function analysisQuery(name: string, created: string, finished: number, state: StudyState) {
  return queryOptions({
    queryKey: ["analysis", name, created, finished, state],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/analysis", { params: { path: { name } } })),
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
}

/** Take a study to another state. Its page learns of it by the event stream. */
export function useUpdateState(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (state: StudyState) =>
      unwrap(api.PATCH("/api/v1/studies/{name}", { params: { path: { name } }, body: { state, reason: "From the console." } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}

/** Delete a study. Its page may be gone before the answer comes, since the stream tells of it: `onDeleted` is called all the same. */
export function useDeleteStudy(name: string, onDeleted: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => unwrap(api.DELETE("/api/v1/studies/{name}", { params: { path: { name } } })),
    onSuccess: () => {
      onDeleted();
      return queries.invalidateQueries({ queryKey: ["studies"] });
    },
  });
}
