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
    const fault = faultOf(new ApiError("too small", "invalid_argument", 400, { field: "space[0].min" }), SPACE);
    expect(messageFor(fault, "parameters.n.min")).toBe("too small");
    expect(messageFor(fault, "parameters.n")).toBe("too small");
    expect(messageFor(fault, "parameters.nn")).toBeUndefined();
    expect(messageFor(null, "parameters")).toBeUndefined();
    expect(faultOf(new FileFault("only", "none"), []).field).toBe("only");
  });
});
