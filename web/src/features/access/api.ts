import { infiniteQueryOptions, keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";
import { startOfDay } from "@/lib/clock";

export function tokensQuery(everyone: boolean) {
  return queryOptions({
    queryKey: ["tokens", everyone],
    queryFn: () => unwrap(api.GET("/api/v1/tokens", { params: { query: { everyone } } })),
  });
}

export interface NewToken {
  name: string;
  scopes: string[];
  study: string | null;
  days: number;
}

export function useCreateToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (token: NewToken) => unwrap(api.POST("/api/v1/tokens", { body: { ...token, request_id: "" } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
}

export function useRevokeToken() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (token_id: string) => unwrap(api.DELETE("/api/v1/tokens/{token_id}", { params: { path: { token_id } } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
}

export const membersQuery = queryOptions({
  queryKey: ["members"],
  queryFn: () => unwrap(api.GET("/api/v1/members")),
});

/** Revoke all present sessions and tokens of a person. */
export function useRevokeAccess() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (person: string) => unwrap(api.POST("/api/v1/revocations", { body: { person } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tokens"] }),
  });
}

export const quotaQuery = queryOptions({
  queryKey: ["quota"],
  queryFn: () => unwrap(api.GET("/api/v1/quota")),
  refetchInterval: 15_000,
});

export interface AuditFilter {
  by?: "people" | "machinery" | undefined;
  actor?: string | undefined;
  action?: string | undefined;
  target?: string | undefined;
  /** Days in the viewer's time zone, both included. */
  from?: string | undefined;
  to?: string | undefined;
  /** Conditions on columns, such as "actor != system". */
  where?: string[] | undefined;
}

export function auditQuery({ from = "", to = "", ...filter }: AuditFilter) {
  const query = { ...filter, since: startOfDay(from), until: startOfDay(to, 1), page_size: 50 };
  return infiniteQueryOptions({
    queryKey: ["audit", query],
    queryFn: ({ pageParam }) => unwrap(api.GET("/api/v1/audit", { params: { query: { ...query, page_token: pageParam } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_page_token || undefined,
    placeholderData: keepPreviousData,
  });
}

export const tenantsQuery = queryOptions({
  queryKey: ["tenants"],
  queryFn: () => unwrap(api.GET("/api/v1/tenants")),
});

export function useCreateTenant() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (slug: string) => unwrap(api.POST("/api/v1/tenants", { body: { slug, name: "" } })),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["tenants"] }),
  });
}

/** Disable a tenant, so that the service refuses its users, or enable it again. */
export function useDisableTenant(slug: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (disabled: boolean) => unwrap(api.PATCH("/api/v1/tenants/{slug}", { params: { path: { slug } }, body: { disabled } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tenants"] }),
  });
}

/** What waits for workers and agents in all tenants. It is polled: waits grow and workers die without an event. */
export const queueQuery = queryOptions({
  queryKey: ["queue"],
  queryFn: () => unwrap(api.GET("/api/v1/queue")),
  refetchInterval: 2000,
});

export type Limits = Record<string, number | null>;

/** Change the limits of a tenant; null restores the limit of the installation. */
export function useLimitTenant(slug: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (limits: Limits) => unwrap(api.PATCH("/api/v1/tenants/{slug}", { params: { path: { slug } }, body: { limits } })),
    onSuccess: () => Promise.all([queries.invalidateQueries({ queryKey: ["tenants"] }), queries.invalidateQueries({ queryKey: ["quota"] })]),
  });
}
