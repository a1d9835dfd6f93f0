import { describe, expect, it } from "vitest";
import type { Trial } from "@/lib/api/client";
import { axisOf } from "./ParallelCoordinates";

const trial = (params: Trial["params"]) => ({ params }) as Trial;
const NOTHING = trial({});

describe("axisOf", () => {
  it("has the range of the parameter if every trial has a value", () => {
    const { scale, written } = axisOf({ name: "n", type: "int", min: 0, max: 10 }, [trial({ n: 4 })], {});
    expect(scale).toMatchObject({ min: 0, max: 10, type: "value" });
    expect(written(trial({ n: 4 }))).toBe(4);
  });

  it.each([
    { log: false, min: 0, max: 10, place: -1 },
    { log: true, min: 1, max: 1e10, place: 0.1 },
  ])("has a place below its range for trials without a value (log: $log)", ({ log, min, max, place }) => {
    const { scale, written } = axisOf({ name: "x", type: "float", min, max, log }, [trial({ x: 2 }), NOTHING], {});
    expect(written(NOTHING)).toBeCloseTo(place);
    expect(scale).toMatchObject({ min: written(NOTHING), max });
  });

  it("has a separate choice for trials without a value", () => {
    const { scale, written } = axisOf({ name: "kind", type: "categorical", values: ["p", "q"] }, [NOTHING], {});
    expect(scale).toMatchObject({ data: [written(NOTHING), "p", "q"] });
    expect(written(trial({ kind: "q" }))).toBe("q");
  });
});
