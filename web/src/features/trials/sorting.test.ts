import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { duration, measuredBy, sortTrials, type Order } from "./sorting";

const NOW = new Date("2026-01-02T12:00:10Z");
const trials = [
  makeTrial({ number: 1, metrics: { t: 10 }, params: { x: "b10" }, agent: "z" }),
  makeTrial({ number: 2, metrics: null, params: {}, state: "FAILED" }),
  makeTrial({ number: 3, metrics: { t: 9 }, params: { x: "b9" }, client_id: "a" }),
  makeTrial({ number: 4, metrics: { t: 10 }, params: { x: "c" }, finished_at: null }),
];
const numbers = (order: Order) => sortTrials(trials, order, NOW).map(({ number }) => number);

it("sorts by metric, trials without it last in both directions, ties by number", () => {
  expect(numbers({ column: "metric:t", descending: false })).toEqual([3, 1, 4, 2]);
  expect(numbers({ column: "metric:t", descending: true })).toEqual([1, 4, 3, 2]);
});

it("sorts parameters in natural order", () => {
  expect(numbers({ column: "param:x", descending: false })).toEqual([3, 1, 4, 2]);
});

it("sorts by agent or client and by number", () => {
  expect(numbers({ column: "agent", descending: false })).toEqual([3, 1, 2, 4]);
  expect(numbers({ column: "number", descending: true })).toEqual([4, 3, 2, 1]);
});

it("names the node of a trial if its agent has another name", () => {
  expect(measuredBy(makeTrial({ agent: "cluster", node: "n[1-2]" }))).toBe("cluster on n[1-2]");
  expect(measuredBy(makeTrial({ agent: "host", node: "host" }))).toBe("host");
  expect(measuredBy(makeTrial({ client_id: "laptop" }))).toBe("laptop");
});

it("does not change the given list", () => {
  numbers({ column: "number", descending: true });
  expect(trials[0]?.number).toBe(1);
});

it("measures a running trial up to now, and has no duration for trials that were added or have not started", () => {
  expect(duration(makeTrial(), NOW)).toBe(2);
  expect(duration(makeTrial({ finished_at: null }), NOW)).toBe(10);
  expect(duration(makeTrial({ seconds: 1.5 }), NOW)).toBe(2);
  expect(duration(makeTrial({ seconds: 2.25 }), NOW)).toBe(2.25);
  expect(duration(makeTrial({ origin: "added" }), NOW)).toBeNull();
  expect(duration(makeTrial({ started_at: null, finished_at: null }), NOW)).toBeNull();
});
