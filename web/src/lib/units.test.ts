import { expect, it } from "vitest";
import { formatValue } from "./format";
import { titled, unitsOf } from "./units";

it("is shown after a name, and after a value where one stands alone", () => {
  const units = unitsOf([
    { name: "cache", type: "int", unit: "MiB" },
    { name: "threads", type: "int" },
  ]);
  expect(units).toEqual({ cache: "MiB" });
  expect([titled("cache", units.cache), titled("threads", units.threads)]).toEqual(["cache (MiB)", "threads"]);
  expect([formatValue(4096, units.cache), formatValue(8, units.threads)]).toEqual(["4096\u202fMiB", "8"]);
  expect(formatValue(undefined, "MiB")).toBe("—");
});
