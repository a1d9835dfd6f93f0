import { describe, expect, it } from "vitest";
import { ApiError } from "@/lib/api/client";
import { formatAgo, formatBytes, formatDigits, formatDuration, formatFactor, formatGain, formatGainInterval, formatMetric, formatNumber, formatPercent, formatSpace, unitOf, writtenTimes } from "./format";

describe("formatNumber", () => {
  it.each([
    [0, "0"],
    [1.23456, "1.235"],
    [1234.5678, "1,235"],
    [123456, "123,456"],
    [-0.5, "−0.5"],
    [0.00001234, "1.234e−5"],
    [2.5e12, "2.5e12"],
    [1e-7, "1e−7"],
    [100, "100"],
  ])("%d is %s", (value, text) => {
    expect(formatNumber(value)).toBe(text);
  });
});

describe("formatBytes", () => {
  it("counts in powers of 1024", () => {
    expect([formatBytes(0), formatBytes(1536), formatBytes(5 * 2 ** 30)]).toEqual(["0\u202fB", "1.5\u202fKiB", "5\u202fGiB"]);
  });
});

describe("formatSpace", () => {
  it("says how many configurations the constraints leave", () => {
    expect(formatSpace({ size: "16777216", feasible: "13" })).toBe("13 of 16,777,216 configurations");
    expect(formatSpace({ size: "4096", feasible: null })).toBe("4,096 configurations");
  });
});

describe("formatDigits", () => {
  it("writes short numbers in full, and long ones by powers of ten", () => {
    expect(formatDigits("4096")).toBe("4,096");
    expect(formatDigits("1234567890123")).toBe("1.23e12");
  });
});

describe("formatMetric", () => {
  it("scales seconds and leaves other units alone", () => {
    expect(formatMetric(1.23456, "s")).toBe("1.235\u202fs");
    expect(formatMetric(0.0123456, "s")).toBe("12.35\u202fms");
    expect(formatMetric(4.2e-6, "seconds")).toBe("4.2\u202fµs");
    expect(formatMetric(0, "s")).toBe("0\u202fs");
    expect(formatMetric(0.5, "MB/s")).toBe("0.5\u202fMB/s");
    expect(formatMetric(12)).toBe("12");
  });

  it("derives the unit of a metric named seconds", () => {
    expect(unitOf({ metric: "seconds", unit: "" })).toBe("s");
    expect(unitOf({ metric: "seconds", unit: "min" })).toBe("min");
    expect(unitOf({ metric: "throughput" })).toBe("");
  });
});

describe("gains", () => {
  it("have more digits the smaller they are, and losses have a sign", () => {
    expect(formatGain(0.1234)).toBe("12.3\u202f%");
    expect(formatGain(0.01234)).toBe("1.2\u202f%");
    expect(formatPercent(0.01234)).toBe("1.23\u202f%");
    expect(formatGain(2.5)).toBe("250\u202f%");
    expect(formatGain(-0.05)).toBe("−5.0\u202f%");
    expect(formatGain(-0.000001)).toBe("0.0\u202f%");
  });

  it("are 100 % only if nothing is left", () => {
    expect(formatGain(0.9994)).toBe("99.9\u202f%");
    expect(formatGain(0.99984)).toBe("99.98\u202f%");
    expect(formatGain(0.999999)).toBe("99.9999\u202f%");
    expect(formatGain(1 - 1e-12)).toBe("99.9999\u202f%");
    expect(formatGain(1)).toBe("100\u202f%");
  });

  it("have an interval if it is known", () => {
    expect(formatGainInterval({ low: -0.02, high: 0.1 })).toBe("−2.0 to 10.0\u202f%");
    expect(formatGainInterval({ low: null, high: null })).toBeNull();
  });

  it("are factors in the direction of the goal", () => {
    const common = { metric: "m", unit: "", gain: null, gain_low: null, gain_high: null, noise: null };
    expect(formatFactor({ ...common, goal: "minimize", default: 3, best: 2 })).toBe("1.5\u202f×");
    expect(formatFactor({ ...common, goal: "maximize", default: 2, best: 5 })).toBe("2.5\u202f×");
    expect(formatFactor({ ...common, goal: "minimize", default: -3, best: -4 })).toBeNull();
    expect(formatFactor({ ...common, goal: "minimize", default: null, best: 2 })).toBeNull();
  });
});

describe("times", () => {
  it.each([
    [0.0123, "12\u202fms"],
    [1.26, "1.3\u202fs"],
    [59.4, "59\u202fs"],
    [61, "1\u202fmin 1\u202fs"],
    [3725, "1\u202fh 2\u202fmin"],
    [400000, "5\u202fdays"],
  ])("%d s is %s", (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });

  it("say how long ago", () => {
    const now = new Date("2026-01-02T12:00:00Z");
    expect(formatAgo(new Date("2026-01-02T11:59:55Z"), now)).toBe("just now");
    expect(formatAgo(new Date("2026-01-02T11:56:00Z"), now)).toBe("4 min ago");
    expect(formatAgo(new Date("2025-12-25T12:00:00Z"), now)).toBe("8 days ago");
  });
});

function refused(data: Record<string, unknown>): ApiError {
  return new ApiError("budget.max_seconds: 60 is not allowed. Use more than the 65 s spent, or null.", "invalid_argument", 400, data);
}

describe("writtenTimes", () => {
  it("uses the unit of the field, and names no value that the service refuses", () => {
    expect(writtenTimes(refused({ above: 65 }), { symbol: "m", seconds: 60 })).toBe("more than 1.09m");
    expect(writtenTimes(refused({ above: 0, at_most: 316_224_000 }), { symbol: "", seconds: 60 })).toBe("more than 0, at most 5,270,400");
    expect(writtenTimes(refused({ above: 3600, at_most: 5000 }), { symbol: "h", seconds: 3600 })).toBe("more than 1h, at most 1.38h");
  });

  it("is undefined for other errors", () => {
    expect(writtenTimes(refused({ field: "budget.max_trials" }), { symbol: "m", seconds: 60 })).toBeUndefined();
    expect(writtenTimes(new Error("no"), { symbol: "m", seconds: 60 })).toBeUndefined();
    expect(writtenTimes(null, { symbol: "m", seconds: 60 })).toBeUndefined();
  });
});
