import { i18n } from "@lingui/core";
import { afterEach, expect, it } from "vitest";
import { reasonText, type ReasonData } from "./reasons";

const failed: ReasonData = { code: "application_failed", values: { exit_code: "3" } };
const silent: ReasonData = { code: "agent_silent", values: { agent: "node-a" } };

afterEach(() => i18n.activate("en"));

it("is the service's sentence in English", () => {
  expect(reasonText("ended with exit code 3", failed)).toBe("ended with exit code 3");
});

it("is made from the code and the values in another language", () => {
  i18n.activate("de");
  expect(reasonText("…", silent)).toBe("Agent node-a has stopped sending heartbeats.");
  expect(reasonText("…", { code: "application_failed", values: { exit_code: "-9" } })).toBe("The application was ended by signal 9.");
  const agents = [{ agent: "node-a", studies: "gcc", more: 0 }, { agent: "node-b", studies: "mpi, io", more: 2 }];
  const parts = [{ code: "agents_busy", values: { agents, more: 1 } }, { code: "place_in_queue", values: { place: 3 } }];
  expect(reasonText("…", { code: "joined", values: { parts } })).toBe(
    "Waits for its turn: node-a is busy with gcc; node-b is busy with mpi, io and 2 more; 1 further agent is busy. Its place in the queue is 3.",
  );
  expect(reasonText("…", { code: "model_saves", values: { objectives: 1, trials: 60 } })).toBe(
    "with one objective and a budget of 60 trials, a model of the measurements saves most of them",
  );
  expect(reasonText("…", { code: "cmaes_adapts", values: { trials: null, at_once: 200 } })).toMatch(/^for 200 trials at once, /);
});

it("keeps the output of the application after the first line", () => {
  i18n.activate("de");
  expect(reasonText("ended with exit code 3\nno such file\nbye", failed)).toBe("The application ended with exit code 3.\nno such file\nbye");
});

it("is the service's sentence without a code, and for the code of a newer service", () => {
  i18n.activate("de");
  const newer: ReasonData = { code: "of_a_newer_service", values: {} };
  expect(reasonText("The disk is full.", null)).toBe("The disk is full.");
  expect(reasonText("It is new.", newer)).toBe("It is new.");
  expect(reasonText("Both.", { code: "joined", values: { parts: [silent, newer] } })).toBe("Both.");
});

it("makes the sentences of notices from their codes", () => {
  i18n.activate("de");
  const read = (code: string, values: Record<string, unknown>) => reasonText("The service's sentence.", { code, values }).replaceAll("\u202f", " ");
  const ratio = { code: "live_ratio", values: { effect: -0.1, low: -0.15, high: -0.05, pairs: 8, settings: "cache=4" } };
  expect(read("live_of_trial", { trial: 3, reason: "…", cause: ratio })).toBe("Trial 3: −9,5 % (95 %: −13,9 % to −4,9 %) in 8 pairs: cache=4.");
  expect(read("live_of_trial", { trial: 3, reason: "The disk is full.", cause: null })).toBe("Trial 3: The disk is full.");
  expect(read("live_of_trial", { trial: 3, reason: "", cause: null })).toBe("Trial 3.");
  expect(read("live_would_change", { trial: 4, parameters: ["a", "b"] })).toBe("Trial 4 would change a, b.");
  expect(read("live_expired", { reason: "…", cause: { code: "plan_too_old", values: { hours: 24 } } })).toBe("Its plan has expired: It was valid for 24 hours.");
  expect(read("rollout_trial_ended", { trial: 9, decision: "guard" })).toBe("Trial 9 of the roll-out has ended: guard broken.");
  const gain = { gain: 0.12, low: 0.1, high: 0.14, conditions: [{ text: "…", code: "machine", values: { machine: "Xeon" } }] };
  expect(read("gain_proven", gain)).toBe("better by 12,0 % (interval: 10,0 to 14,0 %); on Xeon");
  expect(read("gains_of_contexts", { parts: [{ context: "load=idle", code: "gain_proven", values: { ...gain, conditions: [] } }] })).toBe(
    "load=idle: better by 12,0 % (interval: 10,0 to 14,0 %)",
  );
  expect(read("record_jobs_slower", { change: 0.1, low: 0.05, high: 0.15, users: 1, applied: 20, control: 4 })).toBe(
    "Jobs with its settings took 10,0 % longer than the controls (95 %: 5,0 % to 15,0 %; 20 jobs with the settings, 4 controls, of 1 user).",
  );
});
