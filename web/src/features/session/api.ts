import { queryOptions } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

/** The ways to sign in to this service. */
export const signInQuery = queryOptions({
  queryKey: ["sign-in"],
  queryFn: () => unwrap(api.GET("/api/v1/sign-in")),
  staleTime: Infinity,
});

export function signIn(token: string) {
  return unwrap(api.POST("/api/v1/session", { body: { token, tenant: "" } }));
}

export function signOut() {
  return unwrap(api.DELETE("/api/v1/session"));
}
