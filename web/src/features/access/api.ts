import { infiniteQueryOptions, keepPreviousData, queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

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

/** Put a person out at once: sessions and tokens from before now count no longer. */
export function usePutOut() {
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
  actor?: string;
  action?: string;
  target?: string;
}

export function auditQuery(filter: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: ["audit", filter],
    queryFn: ({ pageParam }) => unwrap(api.GET("/api/v1/audit", { params: { query: { ...filter, page_size: 50, page_token: pageParam } } })),
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

/** Disable a tenant, whose callers are then refused, or enable it again. */
export function useDisableTenant(slug: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (disabled: boolean) => unwrap(api.PATCH("/api/v1/tenants/{slug}", { params: { path: { slug } }, body: { disabled } })),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tenants"] }),
  });
}
