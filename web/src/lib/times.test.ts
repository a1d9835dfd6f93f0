import { describe, expect, it } from "vitest";
import { ApiError } from "./api/client";
import { writtenTimes } from "./times";

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
