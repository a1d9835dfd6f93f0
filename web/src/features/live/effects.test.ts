import { describe, expect, it } from "vitest";
import type { LiveInstance, LiveLook } from "@/lib/api/client";
import { changeText, intervalText } from "@/lib/effects";
import { experimentOf, extentOf, judge, numbersOf, percentOf, worthOf } from "./effects";
import { MOST, nearness } from "./guards";

function look(value: number, low: number | null = null, high: number | null = null): LiveLook {
  return { at: 0, value, effect: value, low, high };
}

function instance(changes: Partial<LiveInstance>): LiveInstance {
  return {
    component: "db", instance: "one", agent: "a", seen_at: "2026-01-01T00:00:00Z", state: "running", trial: 3, phase: "block", left: 1,
    candidate: true, settings: {}, reason: "", guards: [], looks: [], pairs: 0, revert_at: null, ...changes,
  };
}

describe("effects", () => {
  it("are changes in percent with their sign", () => {
    expect(changeText(-0.1)).toBe("−9.5\u202f%");
    expect(changeText(Math.log(1.2))).toBe("+20.0\u202f%");
    expect([changeText(0.0001), changeText(-0.0001), changeText(0)]).toEqual(Array(3).fill("0.0\u202f%"));
    expect(percentOf(Math.log(0.5))).toBeCloseTo(-50);
    expect(intervalText(-0.1, null)).toBeNull();
  });

  it("are better or worse by their goal, if the interval excludes no change", () => {
    expect(judge(-0.2, -0.1, "minimize")).toBe("better");
    expect(judge(-0.2, -0.1, "maximize")).toBe("worse");
    expect(judge(0.1, null, "maximize")).toBe("better");
    expect(judge(null, 0.1, "minimize")).toBe("open");
    expect(judge(null, null, "minimize")).toBe("open");
    expect(worthOf(0.03, "minimize")).toBeLessThan(0);
    expect(worthOf(0.03, "maximize")).toBeGreaterThan(0);
  });

  it("have an axis with all pairs and the known part of the interval", () => {
    const { min, max } = extentOf([look(-0.1), look(0.05, -0.2, 0.1), look(0, null, 3)], Math.log(0.97));
    expect(min).toBeLessThan(percentOf(-0.2));
    expect(max).toBeGreaterThan(percentOf(0.1));
    expect(max).toBeLessThan(20);
  });
});

describe("the running trial", () => {
  it("is that of the instance which has its pairs", () => {
    const found = experimentOf([instance({ instance: "two" }), instance({ looks: [look(0)], pairs: 1 }), instance({ state: "kept", trial: 1 })]);
    expect(found).toEqual({ trial: 3, looks: [look(0)], pairs: 1 });
    expect(experimentOf([instance({ state: "idle" })])).toBeNull();
  });

  it("numbers its latest pairs", () => {
    expect(numbersOf({ looks: [look(0), look(1)], pairs: 7 })).toEqual([6, 7]);
    expect(numbersOf({ looks: [look(0)], pairs: 0 })).toEqual([1]);
  });
});

describe("the nearness of a guard", () => {
  it("is the share of the way to the limit", () => {
    expect(nearness({ above: true, limit: 10, value: 5 })).toEqual({ share: 0.5, tone: "good" });
    expect(nearness({ above: true, limit: 10, value: 9 })).toEqual({ share: 0.9, tone: "warn" });
    expect(nearness({ above: true, limit: 10, value: 99 })).toEqual({ share: MOST, tone: "bad" });
    expect(nearness({ above: false, limit: 10, value: 40 })).toEqual({ share: 0.25, tone: "good" });
    expect(nearness({ above: false, limit: 10, value: 0 })).toEqual({ share: MOST, tone: "bad" });
  });

  it("is unknown without a reading or a limit, and has no ratio at a limit of 0", () => {
    expect(nearness({ above: true, limit: null, value: 5 }).tone).toBe("unknown");
    expect(nearness({ above: true, limit: 10, value: null }).tone).toBe("unknown");
    expect(nearness({ above: true, limit: 0, value: 0 })).toEqual({ share: 0, tone: "good" });
    expect(nearness({ above: true, limit: 0, value: 1 })).toEqual({ share: MOST, tone: "bad" });
  });
});
