import { useQueryClient, type QueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { changes, KINDS, type Kind } from "@/lib/changes";
import { Paced } from "@/lib/paced";

// Whatever the rate of changes, what is shown is asked for so often at most.
const PAUSE = 2000;

/** What a page shows of studies, agents and components is asked for again when the service says that it has changed. */
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

/** Queries begin with the name of their kind; what is not shown is asked for when it is. What studies can be filtered by has a pace of its own. */
function refetch(queries: QueryClient, kind: Kind): Promise<unknown> {
  return queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] === kind && queryKey[1] !== "facets" });
}
