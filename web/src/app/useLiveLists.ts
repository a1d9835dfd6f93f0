import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { changes, KINDS, type Kind } from "@/lib/changes";
import { Paced } from "@/lib/paced";

// Milliseconds: the least time between two requests for the same list, whatever the rate of changes.
const PAUSE = 2000;

/** Refetch the shown lists of studies, agents and components when the service reports that they have changed. */
export function useLiveLists(): void {
  const queries = useQueryClient();
  useEffect(() => {
    const refetches = new Map(KINDS.map((kind) => [kind, new Paced(() => refetch(queries, kind), PAUSE)]));
    const stream = changes((kinds) => {
      for (const kind of kinds) refetches.get(kind)?.ask();
    });
    stream.start();
    return () => {
      stream.stop();
      for (const paced of refetches.values()) paced.stop();
    };
  }, [queries]);
}

/** Refetch the shown queries of a kind; their keys begin with its name. The facets of studies have their own interval. */
function refetch(queries: QueryClient, kind: Kind): Promise<unknown> {
  return queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] === kind && queryKey[1] !== "facets" });
}
