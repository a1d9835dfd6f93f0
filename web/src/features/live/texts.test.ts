import { expect, it } from "vitest";
import type { LiveInstance, LiveKept, LiveStatus } from "@/lib/api/client";
import { sourceOf, whyText } from "./texts";

const instance: LiveInstance = {
  component: "db", instance: "one", agent: "a", seen_at: "2026-01-01T00:00:00Z", state: "kept", trial: 9, phase: "", left: 0, candidate: true, settings: {},
  reason: "", guards: [], looks: [], pairs: 0, revert_at: null,
};

function kept(trial: number, in_force: boolean): LiveKept {
  return { trial, params: {}, effect: -0.2, low: -0.3, high: -0.1, pairs: 8, instances: ["one"], at: "2026-01-01T00:00:00Z", in_force, reason: "" };
}

const details = { most_pairs: 24 } as LiveStatus["details"];

it("names the trial whose settings are kept, although a later one has ended on the instance without effect", () => {
  const all = [kept(2, false), kept(4, true)];
  expect(sourceOf(instance, all)).toBe(4);
  expect(whyText(instance, { kept: all, rollout: null, details })).toBe("Kept after trial 4, which showed −18.1\u202f%. Its guards still hold.");
  expect(sourceOf({ ...instance, state: "running" }, all)).toBe(9);
  expect(sourceOf({ ...instance, instance: "two" }, all)).toBe(9);
});

it("says that an instance is held back for comparison", () => {
  const rollout = { held_back: ["three"] } as LiveStatus["rollout"];
  const idle = { ...instance, state: "idle", trial: null } as const;
  expect(whyText({ ...idle, instance: "three" }, { kept: [], rollout, details })).toContain("Held back");
  expect(whyText({ ...idle, instance: "one" }, { kept: [], rollout, details })).toBe("No trial has settings in force.");
});
