import { keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, ApiError, unwrap, type Study, type StudySpec } from "@/lib/api/client";
import { translated } from "./notes";

// The service's largest page.
const MOST = 200;

export const methodsQuery = queryOptions({
  queryKey: ["methods"],
  queryFn: async () => translated(await unwrap(api.GET("/api/v1/methods"))),
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

/** Studies of a component with a completed trial, latest change first. Without a component: studies that are measured by scripts. */
export function earlierQuery(component: string) {
  return queryOptions({
    queryKey: ["studies", "earlier", component],
    queryFn: () => unwrap(api.GET("/api/v1/studies", { params: { query: { component, sort: "-updated", page_size: MOST } } })),
    select: ({ studies }) => studies.filter((study) => study.component === component && study.objectives.some(({ best }) => best !== null)),
    // While the list is open: results of a study are summarised some seconds after its measurements.
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

/** The study that a clone is based on, and a free name for the clone. It is fetched for each new draft. */
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
    // Never refetched during editing, and not cached for the next draft.
    staleTime: Infinity,
    gcTime: 0,
  });
}

/** Return a name that no study has: the given one, or with a number. It is fetched for each new draft. */
export function freeNameQuery(name: string) {
  return queryOptions({
    queryKey: ["free-name", name],
    queryFn: async () => {
      const { studies } = await unwrap(api.GET("/api/v1/studies", { params: { query: { name_prefix: name, page_size: MOST } } }));
      const taken = studies.map((one) => one.name);
      return taken.includes(name) ? nextName(name, taken) : name;
    },
    staleTime: Infinity,
    gcTime: 0,
  });
}

/** Check the name of a new study. It fails in the same way as the creation. */
export function nameQuery(name: string) {
  return queryOptions({
    queryKey: ["study-name", name],
    // TanStack Query does not accept undefined as data.
    queryFn: async () => {
      await unwrap(api.POST("/api/v1/study-name-checks", { body: { name } }));
      return true;
    },
    gcTime: 30_000,
    retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.status === 0),
  });
}

/** The commands that an agent would run for the first trials. It is fetched again until an agent answers, or none does. */
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

/** Return a name without the number at its end: flags of flags-1. */
function stemOf(name: string): string {
  const [, numbered, ended] = /^(?:(.+)-|(.*\D))\d{1,6}$/.exec(name) ?? [];
  return numbered ?? ended ?? name;
}

/** Return the next free name: flags-1 → flags-2; flags → flags-2. */
export function nextName(name: string, taken: readonly string[]): string {
  const stem = stemOf(name);
  let number = stem === name ? 2 : Number(/\d+$/.exec(name)?.[0]) + 1;
  while (taken.includes(`${stem}-${number}`)) number += 1;
  return `${stem}-${number}`;
}
