import { i18n } from "@lingui/core";
import { afterEach, expect, it } from "vitest";
import { adviceText, changesText, conditionText, disturbedText, listedLevelText, verdictText } from "./verdicts";

const verdict = { level: "proven", code: "better", text: "faster by 12.0 % (95 %: 9.0 to 15.0)", gain: 0.12, low: 0.09, high: 0.15, rounds: 10, disturbed_rounds: 0 } as const;

afterEach(() => i18n.activate("en"));

it("is the service's sentence in English, and says what is proven", () => {
  expect(verdictText(verdict)).toBe("proven: faster by 12.0 % (95 %: 9.0 to 15.0)");
  expect(verdictText({ ...verdict, level: "provisional", text: "provisional: faster by 12.0 %" })).toBe("provisional: faster by 12.0 %");
});

it("is made from its code and numbers in another language", () => {
  i18n.activate("de");
  const text = (changes: object) => verdictText({ ...verdict, ...changes }).replaceAll("\u202f", " ").replaceAll(",", ".");
  expect(text({})).toBe("proven: better by 12.0 % (interval: 9.0 to 15.0 %)");
  expect(text({ level: "provisional" })).toContain("provisional: better by 12.0 %");
  expect(text({ level: "no measurable gain", code: "not_better", low: -0.01 })).toContain("no measurable gain (interval: ");
  expect(text({ level: "not yet known", code: "unrepeated", low: null, high: null })).toBe("not yet known: too few measurements were repeated to know the noise");
  expect(text({ level: "no measurable gain", code: "breaks_constraint" })).toBe("no gain to use: runs of the final check broke an outcome constraint");
  expect(text({ disturbed_rounds: 3 })).toBe("proven: better by 12.0 % (interval: 9.0 to 15.0 %); 3 of 10 rounds were disturbed");
  expect(text({ level: "provisional", code: "disturbed", disturbed_rounds: 10 })).toBe(
    "better by 12.0 % (interval: 9.0 to 15.0 %); 10 of 10 rounds were disturbed; not proven for a quiet machine",
  );
  expect(text({ level: "no measurable gain", code: "worse", low: -0.2, high: -0.1 })).toContain("the default is better (interval: ");
  expect(text({ level: "no measurable gain", code: "fails" })).toBe("no gain to use: the best configuration failed in the final check");
  expect(text({ members: [{}], level: "provisional" })).toContain("not proven for a quiet machine");
  expect(text({ code: "of a newer service" })).toBe(`proven: ${verdict.text}`);
  expect(text({ members: [{}], level: "no measurable gain", gain: null })).toContain("all members of the Pareto set broke an outcome constraint");
  expect(text({ members: [], level: "no measurable gain" })).toBe("no measurable gain: the default is the best in every objective");
});

it("says in a list what has disturbed the final check", () => {
  expect(disturbedText({ rounds: 10, disturbed_rounds: 0 })).toBeNull();
  expect(disturbedText({ rounds: null, disturbed_rounds: null })).toBeNull();
  expect(listedLevelText({ level: "proven", rounds: 10, disturbed_rounds: 2, conditions: [] })).toBe("proven, 2 of 10 rounds were disturbed");
  const conditions = [
    { text: "under injected contention", code: "injected", values: {} },
    { text: "on Xeon", code: "machine", values: {} },
  ];
  expect(listedLevelText({ level: "proven", rounds: 10, disturbed_rounds: 0, conditions })).toBe("proven, under injected contention");
});

it("translates conditions by their codes, and shows the service's words for unknown ones", () => {
  const conditions = [
    { text: "", code: "load", values: { share: 0.5, rounds: 10, disturbed: 4 } },
    { text: "", code: "injected", values: { text: "contention" } },
    { text: "", code: "limit", values: { constraint: "memory_mb <= 900", kept: 19, runs: 20 } },
    { text: "", code: "machine", values: { machine: "Xeon" } },
    { text: "", code: "machines", values: { machines: ["Xeon", "Epyc"] } },
    { text: "of a newer service", code: "new", values: {} },
  ];
  i18n.activate("de");
  expect(conditions.map((one) => conditionText(one).replaceAll("\u202f", " ").replaceAll(",", "."))).toEqual([
    "4 of 10 rounds were disturbed: other processes took 50.0 % of the CPUs",
    "under injected contention",
    "keeps memory_mb <= 900 in 19 of 20 runs",
    "on Xeon",
    "on 2 kinds of machines: Xeon; Epyc",
    "of a newer service",
  ]);
  expect(adviceText({ advice: "x", advice_data: { code: "cpu_time", values: {} } })).toContain("CPU time");
  i18n.activate("en");
  expect(conditionText({ text: "on Xeon", code: "machine", values: {} })).toBe("on Xeon");
});

it("names the changes from the default", () => {
  expect(changesText({ x: 0.25, n: 4 }, { x: 0.5, n: 4 })).toBe("x 0.25");
});
