import { describe, expect, it } from "vitest";
import { ApiError, type Parameter } from "@/lib/api/client";
import { faultOf, inFile, messageFor, stepOf } from "./faults";
import { FileFault } from "./studyFile";

const SPACE: Parameter[] = [
  { name: "n", type: "int", min: 1, max: 16 },
  { name: "block", type: "ordinal", values: [4, 16] },
];

describe("where a fault is", () => {
  it.each([
    ["space[1].min", "parameters.block.min"],
    ["space", "parameters"],
    ["execution.parallelism", "parallelism"],
    ["execution.trial_timeout_seconds", "trial_timeout"],
    ["budget.max_seconds", "budget.max_time"],
    ["objectives[1].metric", "objectives[1]"],
    ["algorithm.options.initial", "algorithm.options.initial"],
  ])("%s is %s in the file", (field, place) => {
    expect(inFile(field, SPACE)).toBe(place);
  });

  it.each([
    ["parameters.n.min", "space"],
    ["constraints[0]", "space"],
    ["objectives[0]", "goals"],
    ["algorithm.name", "method"],
    ["pruning[0].name", "method"],
    ["budget.max_trials", "budget"],
    ["name", "review"],
    ["line 3", "review"],
    ["", "review"],
  ] as const)("%s is looked after in the step %s", (field, step) => {
    expect(stepOf(field)).toBe(step);
  });

  it("is told at the field and at what is around it, and nowhere else", () => {
    const fault = faultOf(new ApiError("too small", "invalid_argument", 400, { field: "space[0].min" }), SPACE, {});
    const other = { field: "name", message: "taken" };
    expect(messageFor([other, fault], "parameters.n.min")).toBe("too small");
    expect(messageFor([other, fault], "parameters.n")).toBe("too small");
    expect(messageFor([other, fault], "parameters.nn")).toBeUndefined();
    expect(messageFor([], "parameters")).toBeUndefined();
    expect(faultOf(new FileFault("only", "none"), [], {}).field).toBe("only");
  });

  it("is told in the words of the file", () => {
    const refused = new ApiError("space[1].min: 3 is not allowed. Use at most 1.", "invalid_argument", 400, { field: "space[1].min" });
    expect(faultOf(refused, SPACE, {}).message).toBe("parameters.block.min: 3 is not allowed. Use at most 1.");
    expect(faultOf(new ApiError("A study 'a' exists already.", "study_exists", 409), SPACE, {}).field).toBe("name");
  });

  it.each([
    [{ budget: { max_time: "0m" } }, "budget.max_seconds", 0, "budget.max_time: 0m is not allowed. Use more than 0m, at most 60m."],
    [{ budget: { max_time: 0 } }, "budget.max_seconds", 0, "budget.max_time: 0 is not allowed. Use more than 0, at most 3,600."],
    [{ trial_timeout: "9h" }, "execution.trial_timeout_seconds", 32400, "trial_timeout: 9h is not allowed. Use more than 0h, at most 1h."],
    // An error without numbers keeps the service's own words.
    [{ budget: { max_time: "1m" } }, "budget.max_seconds", "x", "budget.max_time: x is not allowed. Use seconds."],
  ])("names the allowed times of %j in the unit of the file", (file, field, value, message) => {
    const refused = new ApiError(`${field}: ${value} is not allowed. Use seconds.`, "invalid_argument", 400, { field, value, above: 0, at_most: 3600 });
    expect(faultOf(refused, SPACE, file)).toEqual({ field: message.split(":")[0], message });
  });
});
