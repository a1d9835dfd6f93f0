import { describe, expect, it } from "vitest";
import { partsOf, without, withAnother, withPart, wordOf } from "./rules";

const trials = { rule: "trials", trials: 30 };
const seconds = { rule: "seconds", seconds: 60 };

describe("stopping rules", () => {
  it("are combined by any, or by the word that they have", () => {
    expect(withAnother(trials)).toEqual({ any: [trials, { rule: "" }] });
    expect(withAnother({ all: [trials, seconds] })).toEqual({ all: [trials, seconds, { rule: "" }] });
    expect([wordOf(trials), wordOf({ all: [] }), wordOf(null), wordOf("trials")]).toEqual([null, "all", null, null]);
  });

  it("are single rules again when the others are removed", () => {
    expect(without({ all: [trials, seconds] }, 0)).toEqual(seconds);
    expect(without({ any: [trials, seconds, trials] }, 1)).toEqual({ any: [trials, trials] });
    expect(without({ any: [trials] }, 0)).toBeUndefined();
  });

  it("may be nested", () => {
    const inner = { all: [trials, seconds] };
    expect(withPart({ any: [trials, seconds] }, 1, inner)).toEqual({ any: [trials, inner] });
    expect(partsOf({ any: [inner, "nonsense"] })).toEqual([inner, {}]);
    expect(partsOf({ any: 3 })).toEqual([]);
  });
});
