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

/** HOST:PORT at which agents and scripts reach the service: its gRPC port, or behind a proxy the console's own. */
export function useServer(): string {
  const { data } = useQuery(sessionQuery);
  return serverAt(location, data?.grpc_port ?? 0);
}

export function serverAt({ hostname, port, protocol }: Pick<Location, "hostname" | "port" | "protocol">, grpcPort: number): string {
  return `${hostname}:${grpcPort || port || (protocol === "https:" ? 443 : 80)}`;
}
