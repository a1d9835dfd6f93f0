// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import type { Analysis, StudySpec } from "@/lib/api/client";
import { ParetoMembers } from "./ParetoMembers";

const verdict: NonNullable<Analysis["pareto_verdict"]> = {
  level: "proven",
  text: "better in every objective: hypervolume 2.0 % (95 %: 0.8 to 3.9)",
  gain: 0.02,
  low: 0.008,
  high: 0.039,
  trials: 15,
  measured: 30,
  doubtful: 0,
  conditions: [],
  confidence: 0.95,
  members: [
    {
      params: { n: 8, huge: false },
      runs: 5,
      broken: 0,
      objectives: [
        { metric: "seconds", value: 8, default: 10, gain: 0.2, low: 0.1, high: 0.25 },
        { metric: "watts", value: 11, default: 10, gain: -0.1, low: -0.3, high: 0.01 },
      ],
    },
    {
      params: { n: 4, huge: true },
      runs: 1,
      broken: 0,
      objectives: ["seconds", "watts"].map((metric) => ({ metric, value: null, default: null, gain: null, low: null, high: null })),
    },
    {
      params: { n: 16, huge: false },
      runs: 3,
      broken: 1,
      objectives: ["seconds", "watts"].map((metric) => ({ metric, value: null, default: null, gain: null, low: null, high: null })),
    },
    {
      params: { n: 2, huge: true },
      runs: 6,
      broken: 4,
      objectives: ["seconds", "watts"].map((metric) => ({ metric, value: null, default: null, gain: null, low: null, high: null })),
    },
  ],
};
const spec = {
  space: { parameters: [{ name: "n" }, { name: "huge" }] },
  objectives: [
    { metric: "seconds", goal: "minimize", unit: "s" },
    { metric: "watts", goal: "minimize", unit: "W" },
  ],
} as unknown as StudySpec;

it("shows each member's changes and gains, and only a proven gain in green", () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  act(() => {
    root.render(<ParetoMembers verdict={verdict} spec={spec} standard={{ n: 4, huge: false }} />);
  });
  const rows = [...place.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent.replaceAll("\u202f", " ")));
  expect(rows.map((row) => row.slice(0, 4))).toEqual([
    ["n 8", "20.0 % (10.0 to 25.0 %)8 s", "−10.0 % (−30.0 to 1.0 %)11 W", "5"],
    ["huge true", "too few measurements", "too few measurements", "1"],
    ["n 16", "too few measurements", "too few measurements", "3 (1 broke a constraint)"],
    ["n 2, huge true", "no gain to use", "no gain to use", "6 (4 broke a constraint)"],
  ]);
  const colours = [...place.querySelectorAll("tbody td")].map((cell) => cell.className);
  expect(colours.filter((name) => name.includes("good"))).toHaveLength(1);
  expect(colours.filter((name) => name.includes("bad"))).toHaveLength(0);
  act(() => {
    root.unmount();
  });
});
