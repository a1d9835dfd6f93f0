import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ApiError, unwrap, type Study, type StudySpec } from "@/lib/api/client";
import { nextName, stemOf } from "./names";

// The service's limit of a page.
const MOST = 200;

export const methodsQuery = queryOptions({
  queryKey: ["methods"],
  queryFn: () => unwrap(api.GET("/api/v1/methods")),
  staleTime: Infinity,
});

/** What a study of this file would do; asked for again when the file changes. */
export function planQuery(file: string) {
  return queryOptions({
    queryKey: ["plan", file],
    queryFn: () => unwrap(api.POST("/api/v1/plans", { body: { file } })),
    placeholderData: keepPreviousData,
    gcTime: 30_000,
    refetchInterval: 15_000,
    retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.status === 0),
  });
}

/** Studies of a component of which a trial has completed, those that changed last; of none: those that are asked and told. */
export function earlierQuery(component: string) {
  return queryOptions({
    queryKey: ["studies", "earlier", component],
    queryFn: () => unwrap(api.GET("/api/v1/studies", { params: { query: { component, sort: "-updated", page_size: MOST } } })),
    select: ({ studies }) => studies.filter((study) => study.component === component && study.objectives.some(({ best }) => best !== null)),
    // While it is chosen from: what a study has come to is told some seconds after it was measured.
    refetchInterval: 5_000,
  });
}

async function fileOf(name: string): Promise<string> {
  const { text } = await unwrap(api.GET("/api/v1/studies/{name}/file", { params: { path: { name } } }));
  return text;
}

/** The study file that describes a study again; asked for again when its specification changes. */
export function fileQuery({ name, spec }: Study) {
  return queryOptions({ queryKey: ["study-file", name, spec], queryFn: () => fileOf(name), staleTime: Infinity });
}

/** A study to begin like, asked for whenever a draft is begun, and what the new one could be called. */
export function cloneQuery(name: string) {
  return queryOptions({
    queryKey: ["clone", name],
    queryFn: async () => {
      const [study, text, alike] = await Promise.all([
        unwrap(api.GET("/api/v1/studies/{name}", { params: { path: { name } } })),
        fileOf(name),
        unwrap(api.GET("/api/v1/studies", { params: { query: { name_prefix: stemOf(name), page_size: MOST } } })),
      ]);
      return { study, text, name: nextName(name, alike.studies.map((one) => one.name)) };
    },
    retry: false,
    // What the draft began with stays as it is while somebody writes, and is not kept for the next one.
    staleTime: Infinity,
    gcTime: 0,
  });
}

/** Whether a new study could be called this; fails as its creation would. */
export function nameQuery(name: string) {
  return queryOptions({
    queryKey: ["study-name", name],
    // An answer without content is no data to TanStack Query.
    queryFn: async () => {
      await unwrap(api.POST("/api/v1/study-name-checks", { body: { name } }));
      return true;
    },
    gcTime: 30_000,
    retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.status === 0),
  });
}

/** What an agent would run for the first trials of a study; asked for again until one has answered, or none does. */
export function dryRunQuery(spec: StudySpec, name: string) {
  return queryOptions({
    queryKey: ["dry-run", spec, name],
    queryFn: () => unwrap(api.POST("/api/v1/dry-runs", { body: { spec, name } })),
    placeholderData: keepPreviousData,
    gcTime: 30_000,
    staleTime: 30_000,
    refetchInterval: ({ state: { data } }) => (data?.state === "waiting" ? 700 : false),
    retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.status === 0),
  });
}

export function useCreateStudy() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ name, file, tags, request_id }: { name: string; file: string; tags: string[]; request_id: string }) =>
      unwrap(api.POST("/api/v1/studies", { body: { name, file, tags, request_id, load_if_exists: false } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}
