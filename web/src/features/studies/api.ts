import { infiniteQueryOptions, keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import type { paths } from "@/lib/api/_gen/schema";
import type { Edit } from "./edits";
import type { Range } from "./ranges";
import { api, ApiError, meaning, unwrap, type ListedStudy, type StudyState } from "@/lib/api/client";

/** A filter and an order of studies; the service applies both. */
export interface StudyFilter {
  search?: string;
  state?: StudyState[];
  component?: string;
  application?: string;
  owner?: string;
  tag?: string[];
  attention?: boolean;
  sort?: StudySort;
  where?: string[];
}

export type StudySort = NonNullable<NonNullable<paths["/api/v1/studies"]["get"]["parameters"]["query"]>["sort"]>;

export type SettingsFormat = paths["/api/v1/studies/{name}/settings"]["get"]["parameters"]["query"]["format"];

export const PAGE = 50;
/** On a phone, so that the page stays a few screens high. */
export const PAGE_OF_PHONE = 15;
/** The most studies that the service compares. */
export const MOST_COMPARED = 10;

export function studiesQuery(filter: StudyFilter, size = PAGE) {
  return infiniteQueryOptions({
    queryKey: ["studies", filter, size],
    queryFn: ({ pageParam }) =>
      unwrap(api.GET("/api/v1/studies", { params: { query: { ...filter, page_size: size, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token || undefined,
    placeholderData: keepPreviousData,
    // A stream reports changes (app/useLiveLists.ts). This interval helps where a proxy blocks the stream.
    refetchInterval: 60_000,
  });
}

/** The values of a trial in a form; without a trial (0) those that the study recommends. */
export function settingsQuery(study: string, format: SettingsFormat, trial: number, revision: number) {
  return queryOptions({
    queryKey: ["settings", study, format, trial, revision],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/settings", { params: { path: { name: study }, query: { format, trial } } })),
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
}

/** The values by which studies can be filtered. */
export const facetsQuery = queryOptions({
  queryKey: ["studies", "facets"],
  queryFn: () => unwrap(api.GET("/api/v1/study-facets")),
  staleTime: 10_000,
  refetchInterval: 15_000,
});

/** The best value so far of several studies. An empty metric means the first common one. An error if none of the studies exists. */
export function comparisonQuery(study: string[], metric: string) {
  return queryOptions({
    queryKey: ["comparison", study, metric],
    queryFn: () => unwrap(api.GET("/api/v1/comparison", { params: { query: { study, metric } } })),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });
}

/** The most trials of each compared study whose values are drawn. */
const MOST_VALUES = 2000;

/** The values of a metric in the completed trials of a study, or in a sample of them. `last`: the number of its last trial. */
export function valuesQuery(study: string, metric: string, last: number) {
  return queryOptions({
    queryKey: ["values", study, metric, last],
    queryFn: async () => {
      const query = { first: 1, last: Math.max(1, last), most: MOST_VALUES };
      const { trials } = await unwrap(api.GET("/api/v1/studies/{name}/sample", { params: { path: { name: study }, query } }));
      return trials.flatMap(({ state, metrics }) => (state === "COMPLETED" && metrics?.[metric] !== undefined ? [metrics[metric]] : []));
    },
    placeholderData: keepPreviousData,
  });
}

/** Add tags to studies, or remove tags. */
export function useTagStudies() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ studies, add, remove }: { studies: ListedStudy[]; add: string[]; remove: string[] }) => {
      for (const study of studies) {
        const { name, tags } = study;
        const options = { params: { path: { name } }, headers: meaning(study) };
        const wanted = [...tags.filter((tag) => !remove.includes(tag)), ...add];
        const tagged = await unwrap(api.PATCH("/api/v1/studies/{name}", { ...options, body: { tags: wanted, reason: "" } }));
        queries.setQueryData(studyQuery(name).queryKey, tagged);
      }
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}

/** End or delete studies one after the other. The names of those that the service refused are in the error's message. */
export function useManyStudies() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ studies, to }: { studies: ListedStudy[]; to: "COMPLETED" | "ABORTED" | "DELETED" }) => {
      const refused: string[] = [];
      for (const study of studies) {
        const { name } = study;
        const options = { params: { path: { name } }, headers: meaning(study) };
        try {
          await (to === "DELETED"
            ? unwrap(api.DELETE("/api/v1/studies/{name}", options))
            : unwrap(api.PATCH("/api/v1/studies/{name}", { ...options, body: { state: to, reason: "" } })));
        } catch (error) {
          if (!(error instanceof ApiError) || error.status === 0) throw error;
          refused.push(error.message.includes(name) ? error.message : `${name}: ${error.message}`);
        }
      }
      if (refused.length > 0) throw new Error(refused.join(" "));
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}

export function studyQuery(name: string) {
  return queryOptions({
    queryKey: ["study", name],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}", { params: { path: { name } } })),
    retry: false,
  });
}

/**
 * The analysis of a study. It is fetched again when `finished` (trials), `state`, `space` (its version) or `created` (another study of
 * this name) changes, and every two seconds while it is behind the study.
 */
export function analysisQuery(name: string, created: string, finished: number, state: StudyState, space: number) {
  return queryOptions({
    queryKey: ["analysis", name, created, finished, state, space],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/analysis", { params: { path: { name } } })),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.behind ? 2000 : false),
    gcTime: 10_000,
  });
}

/** What a study with waiting trials and no running one waits for, with its place in the queue. */
export function standingQuery(name: string) {
  return queryOptions({
    queryKey: ["standing", name],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/queue", { params: { path: { name } } })),
    refetchInterval: 3000,
  });
}

// A paused study with a reason needs attention, so a pause by the user has none.
const ENDED: readonly StudyState[] = ["COMPLETED", "ABORTED"];

/** Change the state of a study. The event stream updates its page. */
export function useUpdateState(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (state: StudyState) =>
      unwrap(api.PATCH("/api/v1/studies/{name}", { params: { path: { name } }, body: { state, reason: ENDED.includes(state) ? "Stopped in the console." : "" } })),
    onSuccess: (study) => {
      queries.setQueryData(studyQuery(name).queryKey, study);
      return queries.invalidateQueries({ queryKey: ["studies"] });
    },
  });
}

/** Change the budget of a study. */
export function useExtendBudget(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (budget: { max_trials: number | null; max_seconds: number | null; max_node_hours: number | null }) =>
      unwrap(api.PUT("/api/v1/studies/{name}/budget", { params: { path: { name } }, body: budget })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}

interface CheckSettings {
  max_trials: number | null;
  width: number | null;
  effects: number | null;
  request_id: string;
}

/** Begin a final check of a study. `searching`: its search goes on, and ends first. */
export function useCheckStudy(name: string, searching: boolean) {
  const queries = useQueryClient();
  const path = { name };
  return useMutation({
    mutationFn: async (settings: CheckSettings) => {
      const begin = () => unwrap(api.POST("/api/v1/studies/{name}/check", { params: { path }, body: settings }));
      try {
        return await begin();
      } catch (error) {
        // The service has accepted the settings by now, so that no search ends for a check that is refused.
        if (!searching || !(error instanceof ApiError) || error.code !== "search_not_over") throw error;
        await unwrap(api.PATCH("/api/v1/studies/{name}", { params: { path }, body: { state: "COMPLETED", reason: "Ended for the final check." } }));
        return begin();
      }
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}

/** The number of trials that would lie outside of these ranges. An error says what is wrong with the ranges. */
export function outsideQuery(name: string, ranges: Record<string, Range>) {
  return queryOptions({
    queryKey: ["outside", name, ranges],
    queryFn: async () =>
      (await unwrap(api.PATCH("/api/v1/studies/{name}/space", { params: { path: { name } }, body: { ranges, validate_only: true } }))).outside,
    retry: false,
    gcTime: 0,
  });
}

/** Change the parameter ranges of a study. The event stream updates its page. */
export function useChangeSpace(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (ranges: Record<string, Range>) =>
      unwrap(api.PATCH("/api/v1/studies/{name}/space", { params: { path: { name } }, body: { ranges, validate_only: false } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}

/** How the trials would count after an edit. An error says what is wrong with the edit. */
export function wouldCountQuery(name: string, edit: Edit) {
  return queryOptions({
    queryKey: ["would-count", name, edit],
    queryFn: async () =>
      (await unwrap(api.POST("/api/v1/studies/{name}/space/edits", { params: { path: { name } }, body: { edit, validate_only: true, request_id: "", budget: null } }))).trials,
    retry: false,
    gcTime: 0,
  });
}

/** Edit the parameters of a study. The event stream updates its page. */
export function useEditSpace(name: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ edit, request_id }: { edit: Edit; request_id: string }) =>
      unwrap(api.POST("/api/v1/studies/{name}/space/edits", { params: { path: { name } }, body: { edit, request_id, validate_only: false, budget: null } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}

/** Delete a study. `onDeleted` is called even if the event stream has removed the study's page before the answer arrives. */
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
