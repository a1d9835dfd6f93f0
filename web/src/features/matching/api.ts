import { infiniteQueryOptions, keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap, type JobToMatch, type MatchingRecord, type NewMatchingSettings } from "@/lib/api/client";

// Milliseconds: agents report jobs without an event for the console.
const EVERY = 15_000;

export interface RecordFilter {
  search?: string;
  study?: string;
  state?: MatchingRecord["state"] | "";
  sort?: string;
  where?: string[];
}

export function recordsQuery(filter: RecordFilter) {
  const query = { ...filter, page_size: 50 };
  return infiniteQueryOptions({
    queryKey: ["matching", "records", query],
    queryFn: ({ pageParam }) => unwrap(api.GET("/api/v1/matching/records", { params: { query: { ...query, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token || undefined,
    placeholderData: keepPreviousData,
    refetchInterval: EVERY,
  });
}

export function recordQuery(record_id: string) {
  return queryOptions({
    queryKey: ["matching", "record", record_id],
    queryFn: () => unwrap(api.GET("/api/v1/matching/records/{record_id}", { params: { path: { record_id } } })),
    refetchInterval: EVERY,
  });
}

/** The newest records of the studies that have had a name. The name of a deleted study may be used again. */
export function recordOfStudyQuery(study: string) {
  return queryOptions({
    queryKey: ["matching", "record of", study],
    queryFn: () => unwrap(api.GET("/api/v1/matching/records", { params: { query: { study, page_size: 2 } } })),
    refetchInterval: EVERY,
  });
}

export interface RecordChange {
  state: MatchingRecord["state"];
  reason: string;
}

/** Withdraw a record, or make it active again. */
export function useChangeRecord(record_id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: RecordChange) => unwrap(api.PATCH("/api/v1/matching/records/{record_id}", { params: { path: { record_id } }, body })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["matching"] }),
  });
}

export function useMatch() {
  return useMutation({ mutationFn: (job: JobToMatch) => unwrap(api.POST("/api/v1/matching/match", { body: { job, components: [] } })) });
}

export interface JobFilter {
  record?: string;
  decision?: "APPLIED" | "CONTROL" | "DRY_RUN" | "REFUSED" | "EXPLORED" | "";
  where?: string[];
}

export function jobsQuery(filter: JobFilter, size = 50) {
  const query = { ...filter, page_size: size };
  return infiniteQueryOptions({
    queryKey: ["matching", "jobs", query],
    queryFn: ({ pageParam }) => unwrap(api.GET("/api/v1/matching/jobs", { params: { query: { ...query, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token || undefined,
    placeholderData: keepPreviousData,
    refetchInterval: EVERY,
  });
}

export function settingsQuery(cluster: string) {
  return queryOptions({
    queryKey: ["matching", "settings", cluster],
    queryFn: () => unwrap(api.GET("/api/v1/matching/settings", { params: { query: { cluster } } })),
    placeholderData: keepPreviousData,
  });
}

export function useUpdateSettings() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: NewMatchingSettings) => unwrap(api.PUT("/api/v1/matching/settings", { body })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["matching"] }),
  });
}

export const approvalQuery = queryOptions({
  queryKey: ["matching", "approval"],
  queryFn: () => unwrap(api.GET("/api/v1/matching/approval")),
});

export function useUpdateApproval() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (required: boolean) => unwrap(api.PUT("/api/v1/matching/approval", { body: { required } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["matching"] }),
  });
}

/** The quality of the matching by the settings of a cluster, with weights that are learned from the records. It costs about a second. */
export function qualityQuery(cluster: string) {
  return queryOptions({
    queryKey: ["matching", "quality", cluster],
    queryFn: () => unwrap(api.GET("/api/v1/matching/quality", { params: { query: { cluster, learn: true } } })),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });
}
