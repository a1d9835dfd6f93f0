// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import type { Analysis, StudySpec } from "@/lib/api/client";
import { ContextTable } from "./ContextTable";

const rows = [
  {
    ...{ context: { load: "idle" }, settings: { x: 0.25, mode: "b" }, default: { x: 0.5, mode: "a" }, is_default: false, best: { load: "idle", x: 0.25, mode: "b" } },
    verdict: { level: "proven", text: "faster by 12.0 %", value: 8.8, default: 10, conditions: [{ text: "on Xeon", code: "machine", values: {} }] },
  },
  {
    ...{ context: { load: "high" }, settings: { x: 0.5, mode: "a" }, default: { x: 0.5, mode: "a" }, is_default: true, best: { load: "high", x: 0.1, mode: "a" } },
    verdict: { level: "provisional", text: "provisional: faster by 5.0 %", value: 9.5, default: 10, conditions: [] },
  },
  { context: { load: "off" }, settings: { x: 0.5, mode: "a" }, default: { x: 0.5, mode: "a" }, is_default: true, best: null, verdict: null },
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
  // The settings of a row have its value. What was found and is not proven is named as such.
  expect(cells.map((row) => row.slice(0, 6))).toEqual([
    ["idle", "0.25", "b", "8.8 s", "10 s", "proven: faster by 12.0 %on Xeon"],
    ["high", "0.5", "a", "10 s", "10 s", "provisional: faster by 5.0 %found so far: x 0.1"],
    ["off", "0.5", "a", "—", "—", "not measured yet"],
  ]);
  expect([...place.querySelectorAll("tbody td")].filter((cell) => cell.className.includes("good"))).toHaveLength(1);
  act(() => {
    root.render(<ContextTable rows={[]} spec={spec} />);
  });
  expect(place.textContent).toBe("");
  act(() => {
    root.unmount();
  });
});
