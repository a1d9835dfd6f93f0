import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { duration, measuredBy, nextSort, orderOf } from "./sorting";

const NOW = new Date("2026-01-02T12:00:10Z");
it("reads an order from an address, and reverses it by a second click", () => {
  const byValue = orderOf("-metric:t");
  expect(byValue).toEqual({ column: "metric:t", descending: true });
  expect(nextSort(byValue, "metric:t")).toBe("metric:t");
  expect(nextSort(byValue, "param:x")).toBe("param:x");
  expect(nextSort(byValue, "number")).toBe("-number");
});

it("names the node of a trial if its agent has another name", () => {
  expect(measuredBy(makeTrial({ agent: "cluster", node: "n[1-2]" }))).toBe("cluster on n[1-2]");
  expect(measuredBy(makeTrial({ agent: "host", node: "host" }))).toBe("host");
  expect(measuredBy(makeTrial({ client_id: "laptop" }))).toBe("laptop");
});

it("measures a running trial up to now, and has no duration for trials that were added or have not started", () => {
  expect(duration(makeTrial(), NOW)).toBe(2);
  expect(duration(makeTrial({ finished_at: null }), NOW)).toBe(10);
  expect(duration(makeTrial({ seconds: 1.5 }), NOW)).toBe(2);
  expect(duration(makeTrial({ seconds: 2.25 }), NOW)).toBe(2.25);
  expect(duration(makeTrial({ origin: "added" }), NOW)).toBeNull();
  expect(duration(makeTrial({ started_at: null, finished_at: null }), NOW)).toBeNull();
});
