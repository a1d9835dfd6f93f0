import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiError, isSignedOut } from "@/lib/api/client";

const signedOutListeners = new Set<() => void>();

/** Called when the service answers that nobody is signed in: the session is over. */
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
      // What the service refuses it refuses again; only what did not reach it is worth another try.
      retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || error.status === 0 || error.status >= 500),
      staleTime: 2000,
      // The service may be on this machine, without any network.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});
