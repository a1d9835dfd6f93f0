import { expect, it } from "vitest";
import type { Analysis, StudyState } from "./api/client";
import { nextStep } from "./nextStep";

const found = { metrics: {}, numbers: [7], params: {} };
const start = { metrics: {}, numbers: [1], params: {} };

function step(verdict: object | null, several: object | null = null, state: StudyState = "COMPLETED", best = [found]) {
  const analysis = { best, default: start, verdict, pareto_verdict: several } as unknown as Analysis;
  return nextStep(analysis, { state, search_end_reason: "" });
}

const verdict = { level: "proven", code: "better", measured: 20, doubtful: 0 };

it("uses what is proven, and checks what is not", () => {
  expect(step(verdict)).toBe("use");
  expect(step({ ...verdict, level: "provisional" })).toBe("check");
  expect(step({ ...verdict, level: "not yet known", code: "unrepeated" })).toBe("check");
  expect(step({ ...verdict, level: "not yet known", code: "unrepeated" }, null, "ABORTED")).toBe("none");
});

it("repeats disturbed timings on a quiet machine, also those of a search", () => {
  expect(step({ ...verdict, level: "provisional", code: "disturbed" })).toBe("repeat");
  expect(step({ ...verdict, level: "provisional", doubtful: 11 })).toBe("repeat");
  expect(step({ ...verdict, level: "provisional", doubtful: 10 })).toBe("check");
});

it("searches further if there is no gain, and waits for a study at work", () => {
  expect(step({ ...verdict, level: "no measurable gain", code: "worse" })).toBe("search");
  expect(step({ ...verdict, level: "not yet known", code: "default_best" }, null, "COMPLETED", [start])).toBe("search");
  expect(step({ ...verdict, level: "not yet known" }, null, "ACTIVE")).toBe("wait");
  expect(step(null, null, "COMPLETED", [])).toBe("none");
});

it("lets the user choose one of several proven trade-offs", () => {
  expect(step(null, verdict)).toBe("choose");
  expect(step(null, null)).toBe("check");
});
