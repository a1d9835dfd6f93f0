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
