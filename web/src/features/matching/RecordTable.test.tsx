// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it } from "vitest";
import { makeRecord } from "@/testing/factories";
import { RecordTable } from "./RecordTable";

it("shows gains, jobs and reasons, and colours only a change whose interval excludes 0", () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  const fared = (change: number | null, low: number | null, high: number | null) => ({ applied: 4, control: 1, change, low, high, users: 2, unconfirmed: 0 });
  const records = [
    makeRecord({ id: "1", feedback: fared(-0.2, -0.25, -0.1) }),
    makeRecord({ id: "2", feedback: fared(-0.01, -0.1, 0.1) }),
    makeRecord({ id: "3", feedback: fared(null, null, null) }),
    makeRecord({ id: "4", feedback: fared(0.1, 0.05, 0.15), state: "WITHDRAWN", cause: "jobs", state_reason: "Jobs took longer." }),
    makeRecord({ id: "5", state: "WITHDRAWN", cause: "person", state_reason: "The compiler is new." }),
    makeRecord({ id: "6", audience: "user", feedback: { ...fared(null, null, null), applied: 0, control: 0, unconfirmed: 3 } }),
  ];
  act(() => {
    root.render(<RecordTable records={records} sort="-gain" onSort={() => undefined} link={({ id }) => <a href={id}>{id}</a>} study={(name) => name} />);
  });
  const cells = (label: string) => [...place.querySelectorAll(`td[data-label="${label}"]`)].map((cell) => cell.textContent.replaceAll("\u202f", " "));
  expect(cells("Jobs so far")).toEqual([
    "4 jobs with the settings, 1 control20.0 % faster (95 %: −25.0 % to −10.0 %)",
    "4 jobs with the settings, 1 control1.0 % faster (95 %: −10.0 % to +10.0 %)",
    "4 jobs with the settings, 1 controltoo few for a comparison",
    "4 jobs with the settings, 1 control10.0 % slower (95 %: +5.0 % to +15.0 %)",
    "no jobs yet",
    "3 jobs do not count, because no scheduler has confirmed them",
  ]);
  const colours = [...place.querySelectorAll('td[data-label="Jobs so far"]')].map((cell) => [...cell.querySelectorAll("span")].map((one) => one.className).join(" "));
  expect(colours.map((name) => [name.includes("good"), name.includes("bad")])).toEqual([
    [true, false],
    [false, false],
    [false, false],
    [false, true],
    [false, false],
    [false, false],
  ]);
  expect(cells("State")).toEqual(["active", "active", "active", "withdrawnits jobs were slower", "withdrawnThe compiler is new.", "active for ada"]);
  expect(place.querySelector('th[aria-sort="descending"]')?.textContent).toBe("Proven gain");
  act(() => {
    root.unmount();
  });
});
