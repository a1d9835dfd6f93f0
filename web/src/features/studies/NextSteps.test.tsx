// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import type { Analysis, Study } from "@/lib/api/client";
import { NextSteps } from "./NextSteps";

const standard = { x: 0.5 };
const start = { metrics: {}, numbers: [1], params: standard };
const found = { metrics: {}, numbers: [7], params: { x: 0.25 } };

/** Return what the next steps of a study say, with the button that uses the shown configuration. */
function said(state: string, shown: typeof start, changes: object = {}): string {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const study = { state, search_end_reason: "", spec: { space: { parameters: [{ name: "x" }] } } } as unknown as Study;
  const analysis = { best: [shown], default: start, default_params: standard, configurations: 12, verdict: null, pareto_verdict: null, ...changes } as unknown as Analysis;
  const place = document.createElement("div");
  const root = createRoot(place);
  act(() => {
    root.render(<NextSteps study={study} analysis={analysis} mayTune={false} shown={shown} use={() => "[use]"} />);
  });
  const text = place.textContent;
  act(() => {
    root.unmount();
  });
  return text;
}

it("offers nothing to use where the default is the best", () => {
  expect(said("COMPLETED", start)).toBe(
    "The default is recommended: keep it. 12 configurations of 1 parameter were tried, and none is known to be better than the default. A larger budget, wider ranges or other parameters may find a better one.",
  );
  expect(said("ACTIVE", start)).toBe("The search goes on. So far the default is recommended: no configuration is known to be better.");
  expect(said("ACTIVE", found)).toContain("[use]");
  expect(said("COMPLETED", found)).toContain("[use]");
});

it("says of the default among several points that it changes nothing", () => {
  const several = { best: [start, found], pareto_verdict: { level: "proven", measured: 20, doubtful: 0 } };
  expect(said("COMPLETED", start, several)).toBe("This point of the front is the default, so there is nothing to change. Choose another point to see what it gains.");
  expect(said("COMPLETED", found, several)).toBe("Gains are proven. Choose a configuration on the front and use it.[use]");
});
