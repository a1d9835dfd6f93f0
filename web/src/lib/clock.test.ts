import { expect, it } from "vitest";
import { startOfDay } from "./clock";

it("is midnight in the viewer's time zone, also across the end of a month", () => {
  expect(startOfDay("2026-01-31")).toBe(new Date(2026, 0, 31).toISOString());
  expect(startOfDay("2026-01-31", 1)).toBe(new Date(2026, 1, 1).toISOString());
  expect([startOfDay(""), startOfDay("2026-01"), startOfDay("soon")]).toEqual([undefined, undefined, undefined]);
});
