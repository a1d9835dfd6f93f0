// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import type { InsightData } from "@/lib/api/client";
import { Notes } from "./Notes";

const ADVICE = { trials: [3, 7, 11, 15], text: "", call: "study.tell(trial, infeasible='does not work')", command: "trimtab trial fail s NUMBER --infeasible --reason 'does not work'" };

function shown(data: Pick<InsightData, "space" | "penalties">): { text: string; codes: (string | null)[] } {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  act(() => {
    root.render(<Notes data={data} />);
  });
  const found = { text: place.textContent, codes: [...place.querySelectorAll("code")].map((one) => one.textContent) };
  act(() => {
    root.unmount();
  });
  return found;
}

it("says how many configurations are feasible, and how to report penalties", () => {
  const { text, codes } = shown({ space: { size: "16777216", feasible: "13" }, penalties: ADVICE });
  expect(text).toContain("The constraints leave 13 of 16,777,216 configurations.");
  expect(text).toContain("4 values look like penalties: report these trials as infeasible.");
  expect(codes).toEqual([ADVICE.call, ADVICE.command]);
});

it("names the exit code if agents run the trials, and nothing without penalties", () => {
  const { text, codes } = shown({ space: { size: "16", feasible: null }, penalties: { ...ADVICE, trials: [3], call: "", command: "" } });
  expect(text).toBe("1 value looks like a penalty: report this trial as infeasible.The application then ends with an exit code other than 0, and without the metric.");
  expect(codes).toEqual([]);
  expect(shown({ penalties: null }).text).toBe("");
});
