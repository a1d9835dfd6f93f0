import { describe, expect, it } from "vitest";
import { ApiError } from "@/lib/api/client";
import { faultOf, messageFor, stepOf } from "./faults";
import { FileFault } from "./studyFile";

describe("where a fault is", () => {
  it.each([
    ["parameters.n.min", "space"],
    ["constraints[0]", "space"],
    ["objectives[0]", "goals"],
    ["algorithm.name", "method"],
    ["pruning[0].name", "method"],
    ["budget.max_trials", "budget"],
    ["name", "review"],
    ["description", "review"],
    ["budgets", "review"],
    ["line 3", "review"],
    ["", "review"],
  ] as const)("%s is looked after in the step %s", (field, step) => {
    expect(stepOf(field)).toBe(step);
  });

  it("is shown at the field and around it, and nowhere else", () => {
    const fault = faultOf(new ApiError("too small", "invalid_argument", 400, { field: "parameters.n.min" }));
    const other = { field: "name", message: "taken" };
    expect(messageFor([other, fault], "parameters.n.min")).toBe("too small");
    expect(messageFor([other, fault], "parameters.n")).toBe("too small");
    expect(messageFor([other, fault], "parameters.nn")).toBeUndefined();
    expect(messageFor([], "parameters")).toBeUndefined();
    expect(faultOf(new FileFault("line 2", "none", 2)).field).toBe("line 2");
  });

  it.each([
    ["study_exists", {}, "name"],
    ["component_not_found", { component: "gcc" }, "component"],
    ["unreadable_file", { field: "file" }, ""],
    ["invalid_argument", {}, ""],
  ])("%s with %j is a fault of the field '%s'", (code, data, field) => {
    expect(faultOf(new ApiError("refused", code, 400, data))).toEqual({ field, message: "refused" });
  });
});
