// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import type { Analysis, StudySpec } from "@/lib/api/client";
import { ContextTable, foundSettings } from "./ContextTable";

const verdict = { level: "proven", text: "faster by 12.0 %", value: 8.8, default: 10, gain: 0.12, low: 0.1, high: 0.14, conditions: [{ text: "on Xeon", code: "machine", values: {} }] };
const standard = { x: 0.5, mode: "a" };
const rows = [
  { context: { load: "idle" }, settings: { x: 0.25, mode: "b" }, default: standard, is_default: false, best: { load: "idle", x: 0.25, mode: "b" }, verdict },
  {
    ...{ context: { load: "high" }, settings: standard, default: standard, is_default: true, best: { load: "high", x: 0.1, mode: "a" } },
    verdict: { ...verdict, level: "provisional", value: 9.5, gain: 0.05, conditions: [] },
  },
  { context: { load: "off" }, settings: standard, default: standard, is_default: true, best: null, verdict: null },
] as unknown as Analysis["contexts"];
const spec = { objectives: [{ metric: "seconds", unit: "s" }], space: { parameters: [{ name: "x" }, { name: "load" }, { name: "mode" }] } } as unknown as StudySpec;

it("shows the settings and the verdict of each context, and only proven ones in green", () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  act(() => {
    root.render(<ContextTable rows={rows} spec={spec} />);
  });
  const cells = [...place.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent.replaceAll("\u202f", " ")));
  // Each row has the settings whose gain it shows, also if that is not proven, with the default next to them.
  expect(cells.map((row) => row.slice(0, 6))).toEqual([
    ["idle", "x 0.5 → 0.25mode a → b", "8.8 s", "10 s", "12.0 %no gain10.0 to 14.0 %", "provenon Xeon"],
    ["high", "x 0.5 → 0.1", "9.5 s", "10 s", "5.0 %no gain10.0 to 14.0 %", "provisional"],
    ["off", "the default", "—", "—", "—", "not measured yet"],
  ]);
  expect([...place.querySelectorAll("tbody td")].filter((cell) => cell.className.includes("good"))).toHaveLength(1);
  expect(rows.map((row) => foundSettings(row, ["load"]))).toEqual([{ x: 0.25, mode: "b" }, { x: 0.1, mode: "a" }, null]);
  // The second row has a gain that a final check may prove.
  const check = (isPrimary: boolean) => (isPrimary ? "[check first]" : "[check]");
  act(() => {
    root.render(<ContextTable rows={rows} spec={spec} check={check} />);
  });
  expect(place.querySelector("header")?.textContent).toBe("Settings by context[check first]");
  act(() => {
    root.render(<ContextTable rows={rows.slice(0, 1)} spec={spec} check={check} />);
  });
  expect(place.querySelector("header")?.textContent).toBe("Settings by context[check]");
  act(() => {
    root.render(<ContextTable rows={[]} spec={spec} />);
  });
  expect(place.textContent).toBe("");
  act(() => {
    root.unmount();
  });
});
