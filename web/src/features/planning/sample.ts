import { t } from "@lingui/core/macro";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, unwrap, type Configuration } from "@/lib/api/client";

const AT_ONCE = 4;
/** Milliseconds between two looks at what the service computes, and the number of looks: two minutes for one study. */
const PAUSE = 500;
const MOST_LOOKS = 240;
/** The trial that fails, so that the sample also shows how failures look. */
const FAILING = 17;
/* eslint-disable lingui/no-unlocalized-strings -- names in the study */
/** The name of the study with sample data, and of another one that it can be compared with. */
const SAMPLE = "sample";
const ALGORITHMS = { [SAMPLE]: "smbo", "sample-random": "random" };
const file = (algorithm: string) => `# A simulated web server, so that every page has something to show.
objectives: [{minimize: seconds, unit: s}]
algorithm: ${algorithm}
budget: {max_trials: 40}
final_check: {max_trials: 12, effects: 0}
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

/** Create a study and measure all trials that it wants, until it has ended with its final check. */
async function measure(name: string, algorithm: string): Promise<void> {
  const params = { path: { name } };
  await unwrap(api.POST("/api/v1/studies", { body: { name, file: file(algorithm), tags: ["sample"], load_if_exists: false, request_id: "" } }));
  let looks = 0;
  const pause = async () => {
    looks += 1;
    if (looks > MOST_LOOKS) {
      throw new Error(t`The sample data is not complete, because the service computes no suggestions. Start a worker, delete the study ${name} and try again.`);
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  };
  while ((await unwrap(api.GET("/api/v1/studies/{name}", { params }))).state === "ACTIVE") {
    let asked = await unwrap(api.POST("/api/v1/studies/{name}/suggestions", { params, body: { count: AT_ONCE, client_id: "console", request_id: "", schedule_context: false } }));
    while (asked.state === "PENDING" || asked.state === "RUNNING") {
      await pause();
      asked = await unwrap(api.GET("/api/v1/operations/{operation_id}", { params: { path: { operation_id: asked.id } } }));
    }
    const { trials } = asked;
    // The worker prepares the final check.
    if (trials.length === 0) await pause();
    const failing = name === SAMPLE ? trials.find(({ number }) => number === FAILING) : undefined;
    if (failing !== undefined) {
      await unwrap(api.POST("/api/v1/studies/{name}/trials/{number}/fail", { params: { path: { name, number: FAILING } }, body: { infeasible: false, reason: FAILURE } }));
    }
    const results = trials
      .filter((trial) => trial !== failing)
      .map(({ number, params: configuration }) => ({ trial: number, metrics: { seconds: simulated(configuration, Math.random()) } }));
    if (results.length > 0) await unwrap(api.POST("/api/v1/studies/{name}/results", { params, body: { results } }));
  }
}

/** Create two studies with simulated measurements, which can be compared. */
export function useSample(onCreated: (name: string) => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async () => {
      for (const [name, algorithm] of Object.entries(ALGORITHMS)) await measure(name, algorithm);
      return SAMPLE;
    },
    onSuccess: onCreated,
    onSettled: () => queries.invalidateQueries({ queryKey: ["studies"] }),
  });
}
