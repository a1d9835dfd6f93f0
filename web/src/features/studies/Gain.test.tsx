// @vitest-environment jsdom
import { i18n } from "@lingui/core";
import { I18nProvider } from "@lingui/react";
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import type { Analysis, Study } from "@/lib/api/client";
import { Gain } from "./Gain";

// The theme asks for it while it is imported, and jsdom does not have it.
vi.hoisted(() => {
  globalThis.matchMedia = () => ({ matches: false, addEventListener: () => undefined }) as unknown as MediaQueryList;
});

const study = { spec: { noisy: true }, state: "COMPLETED", search_end_reason: "", active_count: 0 } as unknown as Study;
const objective = { goal: "minimize", unit: "s", default: 10, best: 8, gain: 0.2, noise: null, gain_low: null, gain_high: null };

/** Show an analysis, and return what `read` finds on the page. */
function shown<T>(changes: Partial<Record<keyof Analysis, unknown>>, read: (place: HTMLElement) => T): T {
  const analysis = { best: [], default: null, default_params: {}, configuration: null, verdict: null, pareto_verdict: null, recommendation: null, configurations: 0, advice: "", advice_data: null, ...changes } as unknown as Analysis;
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  act(() => {
    root.render(
      <I18nProvider i18n={i18n}>
        <Gain analysis={analysis} study={study} />
      </I18nProvider>,
    );
  });
  const found = read(place);
  act(() => {
    root.unmount();
  });
  return found;
}

/** Return the headline of each objective's gain. */
function headlines(changes: Partial<Record<keyof Analysis, unknown>>): (string | undefined)[] {
  // Each objective is a name, a headline and the values.
  return shown(changes, (place) => [...place.querySelectorAll("dl")].map((one) => one.parentElement?.querySelectorAll("p")[1]?.textContent.replaceAll("\u202f", " ").trim()));
}

it("says of each of several objectives whether its gain is estimated, measured or open", () => {
  const first = { ...objective, metric: "seconds" };
  const second = { ...objective, metric: "watts" };
  expect(headlines({ objectives: [first, second] })).toEqual(["20.0 % better, estimated 1.25 ×", "20.0 % better, estimated 1.25 ×"]);
  const pareto_verdict = { level: "no measurable gain", text: "", gain: 0, low: 0, high: 0.1, trials: 20, members: [{}] };
  const checked = [
    { ...first, gain_low: 0.1, gain_high: 0.3 },
    { ...second, gain_low: -0.1, gain_high: 0.3 },
  ];
  expect(headlines({ objectives: checked, pareto_verdict })).toEqual(["20.0 % better 1.25 ×", "No measurable gain"]);
  expect(headlines({ objectives: [first, second], pareto_verdict: { ...pareto_verdict, gain: null } })).toEqual(["Breaks a constraint", "Breaks a constraint"]);
});

const verdict = { level: "proven", code: "better", text: "faster by 20.0 %", gain: 0.2, low: 0.1, high: 0.3, trials: 20, rounds: 10, disturbed_rounds: 0, measured: 20, doubtful: 0, conditions: [], compared: null, advice: "" };
const seconds = { ...objective, metric: "seconds", gain_low: 0.1, gain_high: 0.3 };
const words = (place: Element) => place.textContent.replaceAll("\u202f", " ");

it("says next to a proven gain that rounds were disturbed, under which conditions it holds, and what would help", () => {
  const load = { text: "3 of 10 rounds were disturbed: other processes took 50 % of the CPUs", code: "load", values: {} };
  const injected = { text: "under injected contention", code: "injected", values: {} };
  const disturbed = { ...verdict, text: "faster by 20.0 %; 3 of 10 rounds were disturbed", disturbed_rounds: 3, conditions: [load, injected], advice: "CPU time is less affected." };
  const items = shown({ objectives: [seconds], verdict: disturbed }, (place) => [...place.querySelectorAll("li")].map(words));
  expect(items).toEqual([load.text, injected.text, "CPU time is less affected."]);
  expect(shown({ objectives: [seconds], verdict: disturbed }, words)).toContain("proven: faster by 20.0 %; 3 of 10 rounds were disturbed");
  expect(shown({ objectives: [seconds], verdict }, (place) => place.querySelectorAll("li")).length).toBe(0);
});

it("recommends the default if the final check has not shown a gain, and names what was compared", () => {
  const compared = { configuration: { x: 0.25, n: 4 }, value: 12, runs: 7, gain: -0.2, low: -0.3, high: -0.1 };
  const nothing = { ...seconds, best: 10, gain: 0, gain_low: null, gain_high: null };
  const worse = { ...verdict, level: "no measurable gain", code: "worse", text: "the default is better", gain: 0, low: null, high: null, compared };
  const changes = { objectives: [nothing], default_params: { x: 0.5, n: 4 } };
  expect(headlines({ ...changes, verdict: worse })).toEqual(["The default is better"]);
  expect(shown({ ...changes, verdict: worse }, words)).toContain("The default is recommended. Compared with it: x 0.25, 12 s in 7 measurements.");
  const titles = { not_better: "No measurable gain", breaks_constraint: "Breaks a constraint", fails: "The best configuration fails", check_failed: "The final check has failed" };
  for (const [code, title] of Object.entries(titles)) expect(headlines({ ...changes, verdict: { ...worse, code } })).toEqual([title]);
});
