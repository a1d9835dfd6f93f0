import { describe, expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { laidOut } from "./Timeline";

const at = "2026-01-01T00:00:00Z";

describe("laidOut", () => {
  it("has a line for each client, sorted by name, and omits trials that have not started", () => {
    const trials = [
      makeTrial({ number: 1, started_at: at, client_id: "b" }),
      makeTrial({ number: 2, started_at: at, client_id: "a" }),
      makeTrial({ number: 3, started_at: null }),
    ];
    const { shown, lines, left } = laidOut(trials);
    expect(shown.map(({ number }) => number)).toEqual([1, 2]);
    expect(lines).toEqual(["a", "b"]);
    expect(left).toBe(0);
  });
  it("counts the earlier trials that do not fit", () => {
    const trials = Array.from({ length: 5100 }, (_, index) => makeTrial({ number: index + 1, started_at: at, client_id: "a" }));
    const { shown, left } = laidOut(trials);
    expect([shown.length, shown[0]?.number, left]).toEqual([5000, 101, 100]);
  });
  it("prefers the clients that measured last, and omits trials without a line", () => {
    const trials = Array.from({ length: 50 }, (_, index) => makeTrial({ number: index + 1, started_at: at, client_id: `agent-${index}` }));
    const { shown, lines, left } = laidOut(trials);
    expect([shown.length, lines.length, left]).toEqual([40, 40, 10]);
    expect(lines).toContain("agent-49");
    expect(lines).not.toContain("agent-9");
  });
});
