import { i18n } from "@lingui/core";
import { afterEach, expect, it } from "vitest";
import { verdictText } from "./verdicts";

const verdict = { level: "proven", code: "better", text: "faster by 12.0 % (95 %: 9.0 to 15.0)", gain: 0.12, low: 0.09, high: 0.15 } as const;

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
  expect(text({ code: "of a newer service" })).toBe(`proven: ${verdict.text}`);
  expect(text({ members: [{}], level: "no measurable gain", gain: null })).toContain("all members of the Pareto set broke an outcome constraint");
  expect(text({ members: [], level: "no measurable gain" })).toBe("no measurable gain: the default is the best in every objective");
});
