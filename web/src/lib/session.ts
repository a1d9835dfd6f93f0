import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

/** Who is signed in; an ApiError of status 401 where nobody is. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => unwrap(api.GET("/api/v1/session")),
  staleTime: Infinity,
  retry: false,
});

/** Whether who is signed in may do something. The service refuses it anyway: this only keeps buttons away that lead nowhere. */
export function useMay(): (action: string) => boolean {
  const { data } = useQuery(sessionQuery);
  return (action) => data?.actions.includes(action) ?? false;
}
