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

/** Return the headline of each objective's gain. */
function headlines(changes: Partial<Record<keyof Analysis, unknown>>): (string | undefined)[] {
  const analysis = { best: [], default: null, verdict: null, pareto_verdict: null, recommendation: null, configurations: 0, ...changes } as unknown as Analysis;
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
  // Each objective is a name, a headline and the values.
  const found = [...place.querySelectorAll("dl")].map((one) => one.previousElementSibling?.textContent.replaceAll("\u202f", " ").trim());
  act(() => {
    root.unmount();
  });
  return found;
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
