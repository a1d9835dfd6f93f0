import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, isSignedOut } from "@/lib/api/client";

const signedOutListeners = new Set<() => void>();

/** Register a listener for answers that say that the session is over. */
export function onSignedOut(listener: () => void): void {
  signedOutListeners.add(listener);
}

function watch(error: Error): void {
  if (isSignedOut(error)) for (const listener of signedOutListeners) listener();
}

export const queries = new QueryClient({
  queryCache: new QueryCache({ onError: watch }),
  mutationCache: new MutationCache({ onError: watch }),
  defaultOptions: {
    queries: {
      // A refusal stays a refusal. Only requests that did not reach the service, and its faults, are worth a retry.
      retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
      staleTime: 2000,
      // The service may be on this machine, without any network.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});
