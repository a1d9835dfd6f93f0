// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import type { Analysis, StudySpec } from "@/lib/api/client";
import { ContextTable } from "./ContextTable";

const rows = [
  { context: { load: "idle" }, settings: { x: 0.25, mode: "b" }, is_default: false, best: null, verdict: { level: "proven", text: "faster by 12.0 %" } },
  { context: { load: "high" }, settings: { x: 0.5, mode: "a" }, is_default: true, best: null, verdict: null },
] as unknown as Analysis["contexts"];
const spec = { space: { parameters: [{ name: "x" }, { name: "load" }, { name: "mode" }] } } as unknown as StudySpec;

it("shows the settings and the verdict of each context, and only proven ones in green", () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  act(() => {
    root.render(<ContextTable rows={rows} spec={spec} />);
  });
  const cells = [...place.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  expect(cells.map((row) => row.slice(0, 4))).toEqual([
    ["idle", "0.25", "b", "proven: faster by 12.0 %"],
    ["high", "0.5", "a", "not measured yet"],
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
