import { keepPreviousData, queryOptions, useMutation } from "@tanstack/react-query";
import { api, unwrap, type Configuration, type TrialDetail } from "@/lib/api/client";
import type { Filter, Order } from "./tableQuery";

/** A trial with its measurements and log. It is fetched again when its revision changes. */
export function trialQuery(study: string, number: number, revision: number) {
  return queryOptions({
    queryKey: ["trial", study, number, revision],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/trials/{number}", { params: { path: { name: study, number } } })),
    placeholderData: keepPreviousData,
    // The agent reports the result first, and then sends the rest of the output and the files.
    refetchInterval: ({ state: { data, dataUpdateCount } }) => (data !== undefined && hasJustEnded(data) && dataUpdateCount < 10 ? 2000 : false),
  });
}

function hasJustEnded({ finished_at, leases }: TrialDetail): boolean {
  return finished_at !== null && leases.length > 0 && Math.abs(Date.now() - Date.parse(finished_at)) < 120_000;
}

export interface RowsWanted {
  order: Order;
  filter: Filter;
  offset: number;
  size: number;
}

/** A page of a study's table of trials, sorted and filtered by the service. It is fetched again when `revision` (of the study) changes. */
export function rowsQuery(study: string, { order, filter: { state, reason, where }, offset, size }: RowsWanted, revision: number) {
  return queryOptions({
    queryKey: ["rows", study, order, state, reason, where, offset, size, revision],
    queryFn: () =>
      unwrap(
        api.GET("/api/v1/studies/{name}/table", {
          params: {
            path: { name: study },
            query: { order: order.column, descending: order.descending, state: state === "" ? [] : [state], reason: reason ?? undefined, where: [...where], offset, page_size: size },
          },
        }),
      ),
    // Rows of another page, filter or order are never shown under the present one. Only a new revision keeps the last rows.
    placeholderData: (rows, asked) => (isSamePage(asked?.queryKey, [study, order, state, reason, where, offset, size]) ? rows : undefined),
    gcTime: 10_000,
  });
}

/** Return whether the key of a query of rows is of this page, in whatever revision. */
export function isSamePage(key: readonly unknown[] | undefined, page: readonly unknown[]): boolean {
  return JSON.stringify(key?.slice(1, -1)) === JSON.stringify(page);
}

/** Why trials of a study gave no result. It is fetched again when `finished` (trials) changes. */
export function failuresQuery(study: string, finished: number) {
  return queryOptions({
    queryKey: ["failures", study, finished],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/failures", { params: { path: { name: study } } })),
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
}

/** The measurements of trials at their steps: all, or a sample in which these trials are. It is fetched again when `finished` (trials) changes. */
export function curvesQuery(study: string, finished: number, metric: string, trial: number[]) {
  return queryOptions({
    queryKey: ["curves", study, metric, trial, finished],
    queryFn: () => unwrap(api.GET("/api/v1/studies/{name}/curves", { params: { path: { name: study }, query: { metric, trial } } })),
    placeholderData: keepPreviousData,
    gcTime: 30_000,
  });
}

/** Fetch the trials of an interval of numbers: all, or a uniform sample of about `most`. */
export async function fetchInterval(study: string, first: number, last: number, most: number) {
  const query = { first: Math.max(1, Math.floor(first)), last: Math.ceil(last), most };
  const { trials } = await unwrap(api.GET("/api/v1/studies/{name}/sample", { params: { path: { name: study }, query } }));
  return trials;
}

export function useStopTrial(study: string, number: number) {
  return useMutation({
    mutationFn: () =>
      unwrap(
        api.POST("/api/v1/studies/{name}/trials/{number}/stop", {
          params: { path: { name: study, number } },
          body: { reason: "Stopped from the console." },
        }),
      ),
  });
}

/** Stop several trials, one after another. The first that cannot be stopped ends this with its error. */
export function useStopTrials(study: string) {
  return useMutation({
    mutationFn: async (numbers: readonly number[]) => {
      for (const number of numbers) {
        const params = { path: { name: study, number } };
        await unwrap(api.POST("/api/v1/studies/{name}/trials/{number}/stop", { params, body: { reason: "Stopped from the console." } }));
      }
    },
  });
}

/** Enqueue a configuration, which is measured before further suggestions. */
export function useEnqueue(study: string) {
  return useMutation({
    mutationFn: ({ params, count }: { params: Configuration; count: number }) =>
      unwrap(
        api.POST("/api/v1/studies/{name}/queue", {
          params: { path: { name: study } },
          body: { params, count, request_id: crypto.randomUUID() },
        }),
      ),
  });
}
