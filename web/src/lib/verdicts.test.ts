import { i18n } from "@lingui/core";
import { afterEach, expect, it } from "vitest";
import { adviceText, changesText, conditionText, disturbedText, earlierTrialsText, effectsText, listedLevelText, verdictText } from "./verdicts";

const verdict = { level: "proven", code: "better", text: "faster by 12.0 % (95 %: 9.0 to 15.0)", gain: 0.12, low: 0.09, high: 0.15, rounds: 10, disturbed_rounds: 0 } as const;

afterEach(() => i18n.activate("en"));

it("is the service's sentence in English, and says what is proven", () => {
  expect(verdictText(verdict)).toBe("proven: faster by 12.0\u202f% (95\u202f%: 9.0 to 15.0)");
  expect(verdictText({ ...verdict, level: "provisional", text: "provisional: faster by 12.0 %" })).toBe("provisional: faster by 12.0\u202f%");
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

it("says in another language which changes carry a gain, from the numbers alone", () => {
  const change = { name: "buffers", default: 1, found: 8, effect: 0.2, low: 0.1, high: 0.3, matters: true, together: [] };
  const other = { ...change, name: "walks", found: 3, low: -0.1, matters: false };
  const smallest = { params: { buffers: 8, walks: 1 }, gain: 0.2, low: 0.1, high: 0.3, kept: 0.99, kept_low: 0.92, kept_high: 1.04 };
  const effects = { text: "of the service", trials: 9, tolerance: 0.1, parameters: [change, other], smallest };
  const text = (changes: object) => effectsText({ ...effects, ...changes }).replaceAll("\u202f", " ").replace(/(\d),(\d)/g, "$1.$2");
  expect(text({})).toBe("of the service");
  i18n.activate("de");
  expect(text({})).toBe("1 of 2 changes keeps 99.0 % of the gain (interval: 92.0 to 104 %): buffers");
  expect(text({ smallest: { ...smallest, params: { buffers: 8, walks: 3 } } })).toContain("2 of 2 changes keep 99.0 %");
  expect(text({ smallest: null })).toBe("No smaller set of the 2 changes was shown to keep the gain. These matter: buffers");
  expect(text({ smallest: null, parameters: [change] })).toBe("The only change carries the gain: buffers");
  expect(text({ smallest: null, parameters: [] })).toContain("The constraints allow nothing");
  const many = Array.from({ length: 9 }, (_, place) => ({ ...change, name: `p${place}` }));
  expect(text({ smallest: null, parameters: many })).toContain("p5 and 3 more");
});

it("says how trials count after an edit of the space", () => {
  expect(earlierTrialsText({ total: 1, used: 1, imputed: 0, left_out: {}, values: {} })).toBe("1 of 1 trial is used.");
  expect(earlierTrialsText({ total: 3000, used: 2100, imputed: 12, left_out: { n: 1, x: 899 }, values: { y: 0.5 } })).toBe(
    "2,100 of 3,000 trials are used, 12 of them with y = 0.5 in place of a value that they lack; 1 had another value of n and is left out; 899 had another value of x and are left out.",
  );
  expect(earlierTrialsText({ total: 3, used: 2, imputed: 0, left_out: { constraints: 1 }, values: {} })).toBe(
    "2 of 3 trials are used; 1 had a combination that is not allowed now and is left out.",
  );
});
