import { expect, it } from "vitest";
import { ApiError } from "@/lib/api/client";
import { faultOf, refusalOf } from "./Conditions";

const COLUMNS = ["gain", "trials", "budget"];

it("says what is wrong with a condition before it is sent, and which column may be meant", () => {
  expect(faultOf("gain > 10", COLUMNS)).toBeNull();
  expect(faultOf("  ", COLUMNS)).toBeNull();
  expect(faultOf("param:threads > 8", COLUMNS)).toBeNull();
  expect(faultOf("gain", COLUMNS)).toContain("is not a condition on this table.");
  expect(faultOf("bugdet > 1", COLUMNS)).toContain("Did you mean “budget”?");
  expect(faultOf("colour = red", COLUMNS)).toBe("There is no column “colour”. The columns are gain, trials and budget.");
});

it("tells the refusal of a condition from other errors", () => {
  const error = (data: Record<string, unknown>) => new ApiError("where: a number", "invalid_argument", 400, data);
  expect(refusalOf(error({ field: "where", value: "gain > many" }))).toEqual({ condition: "gain > many", reason: "where: a number" });
  expect(refusalOf(error({ field: "sort", value: "up" }))).toBeNull();
  expect(refusalOf(new Error("down"))).toBeNull();
  expect(refusalOf(null)).toBeNull();
});
