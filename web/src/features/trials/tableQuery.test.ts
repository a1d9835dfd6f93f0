import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { conditionOf, conditionText, duration, filterable, measuredBy, nextSort, orderOf } from "./tableQuery";

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

const columns = filterable(["metric:seconds", "differences", "param:threads", "param:seconds", "param:a<b", "agent", "duration", "started", "reason"]);

it("adds the kind of the column, a metric before a parameter of its name", () => {
  expect(conditionOf("threads>8", columns)).toBe("param:threads > 8");
  expect(conditionOf("  seconds <= 1.5 ", columns)).toBe("metric:seconds <= 1.5");
  expect(conditionOf("agent ~ node", columns)).toBe("agent ~ node");
  expect(conditionOf("number != 3", columns)).toBe("number != 3");
});

it("leaves what it cannot read to the service", () => {
  expect(conditionOf("thread > 8", columns)).toBe("thread > 8");
  expect(conditionOf("fast ones", columns)).toBe("fast ones");
  expect(conditionOf("started > 8", columns)).toBe("started > 8");
});

it("is shown as it was written", () => {
  expect(conditionText("param:threads > 8")).toBe("threads > 8");
  expect(conditionText("agent = param:x")).toBe("agent = param:x");
});
