import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/lib/api/client";

/** The session; an ApiError of status 401 if nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => unwrap(api.GET("/api/v1/session")),
  staleTime: Infinity,
  retry: false,
});

/** Return a check of the user's permissions. It only hides buttons: the service enforces the permissions. */
export function useMay(): (action: string) => boolean {
  const { data } = useQuery(sessionQuery);
  return (action) => data?.actions.includes(action) ?? false;
}

/** Return HOST:PORT at which agents and scripts reach the service: its gRPC port, or the console's own port behind a proxy. */
export function useServer(): string {
  const { data } = useQuery(sessionQuery);
  return serverAt(location, data?.grpc_port ?? 0);
}

export function serverAt({ hostname, port, protocol }: Pick<Location, "hostname" | "port" | "protocol">, grpcPort: number): string {
  return `${hostname}:${grpcPort || port || (protocol === "https:" ? 443 : 80)}`;
}
