import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap, type Configuration } from "@/lib/api/client";

const TRIALS = 40;
const AT_ONCE = 8;
/** The trial that fails, so that the sample also shows how failures look. */
const FAILING = 17;
/* eslint-disable lingui/no-unlocalized-strings -- names in the study */
/** The name of the study with sample data. */
export const SAMPLE = "sample";
const FILE = `# A simulated web server, so that every page has something to show.
objectives: [{minimize: seconds, unit: s}]
algorithm: tpe
budget: {max_trials: ${TRIALS}}
description: |
  Sample data: the console itself has made the measurements, with a formula and some noise. Delete the study when you no longer need it.
parameters:
  threads: {type: int, min: 1, max: 32, default: 4}
  cache_mb: {type: ordinal, values: [16, 32, 64, 128, 256], default: 16}
  compression: {type: categorical, values: [none, fast, strong], default: strong}
  keep_alive: {type: bool, default: false}
`;
const FAILURE = "The simulated server ended with exit code 137: its memory was exhausted before the first request.";
const COMPRESSION: Record<string, number> = { none: 0.25, fast: 0, strong: 0.6 };
/* eslint-enable lingui/no-unlocalized-strings */

/** Return the simulated time of a configuration in seconds; `noise` is between 0 and 1. */
export function simulated({ threads, cache_mb, compression, keep_alive }: Configuration, noise: number): number {
  const busy = Math.abs(Math.log2(Number(threads) / 12)) * 0.35;
  const cache = 0.5 * (1 - Math.log2(Number(cache_mb) / 16) / 4);
  const seconds = 1.2 + busy + cache + (COMPRESSION[String(compression)] ?? 0) + (keep_alive === true ? 0 : 0.3);
  return seconds * (0.98 + 0.04 * noise);
}

/** Create a study with simulated measurements. */
export function useSample(onCreated: (name: string) => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      const params = { path: { name: SAMPLE } };
      await unwrap(api.POST("/api/v1/studies", { body: { name: SAMPLE, file: FILE, tags: ["sample"], load_if_exists: false, request_id: "" } }));
      for (let done = 0; done < TRIALS; done += AT_ONCE) {
        const asked = await unwrap(api.POST("/api/v1/studies/{name}/suggestions", { params, body: { count: AT_ONCE, client_id: "console", request_id: "", schedule_context: false } }));
        const failing = asked.trials.find(({ number }) => number === FAILING);
        if (failing !== undefined) {
          await unwrap(api.POST("/api/v1/studies/{name}/trials/{number}/fail", { params: { path: { name: SAMPLE, number: FAILING } }, body: { infeasible: false, reason: FAILURE } }));
        }
        const results = asked.trials
          .filter((trial) => trial !== failing)
          .map(({ number, params: configuration }) => ({ trial: number, metrics: { seconds: simulated(configuration, Math.random()) } }));
        await unwrap(api.POST("/api/v1/studies/{name}/results", { params, body: { results } }));
      }
      return SAMPLE;
    },
    onSuccess: onCreated,
    onSettled: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}
