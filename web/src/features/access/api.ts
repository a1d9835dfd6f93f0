import { queryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
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
