import { queryOptions, useQuery } from "@tanstack/react-query";
import { useRef } from "react";
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

type Mutate<Input> = (input: Input, options: { onSuccess?: () => void; onSettled: () => void }) => void;

/** Return a `mutate` that ignores calls while one is running. A second click can arrive before its button is disabled. */
export function useOneAtATime<Input>(mutate: Mutate<Input>): (input: Input, onSuccess?: () => void) => void {
  const working = useRef(false);
  return (input, onSuccess = () => undefined) => {
    if (working.current) return;
    working.current = true;
    mutate(input, { onSuccess, onSettled: () => (working.current = false) });
  };
}
