import { describe, expect, it } from "vitest";
import { tryCommand } from "./WouldRun";

describe("tryCommand", () => {
  it("names every value, each as one word", () => {
    expect(tryCommand("gcc-flags", "small", { n: 8, mode: "a b", huge: true })).toBe(
      "trimtab-agent try gcc-flags --dry-run --components ./components \\\n    --application small \\\n    --set n=8 \\\n    --set 'mode=a b' \\\n    --set huge=true",
    );
    expect(tryCommand("c", "", {})).toBe("trimtab-agent try c --dry-run --components ./components");
  });
});
