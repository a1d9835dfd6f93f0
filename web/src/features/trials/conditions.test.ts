import { expect, it } from "vitest";
import { conditionOf, conditionText, filterable } from "./conditions";

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
