import { describe, expect, it } from "vitest";
import type { Parameter } from "@/lib/api/client";
import { makeStudy } from "@/testing/factories";
import { edit, FileFault, fromSpec, read, seconds, toSpec, write } from "./studyFile";

const SPACE: Parameter[] = [
  { name: "n", type: "int", min: 1, max: 16, default: 4 },
  { name: "huge", type: "bool", default: false },
  { name: "block", type: "ordinal", values: [4, 16, 64], default: 16 },
];
const FILE = `# tonight
component: gcc-flags # the flags
application: kernels
parameters:
  n: {max: 8}
only: [n, block]
objectives: [{minimize: seconds, unit: s}]
algorithm: auto
budget: {max_trials: 30, max_time: 2m}
pruning: [default, {name: limit, options: {seconds: 60}}]
final_check: true
trial_timeout: 60s
start_from: [flags-1]
`;

function fault(make: () => unknown): string {
  try {
    make();
  } catch (error) {
    if (error instanceof FileFault) return error.field;
    throw error;
  }
  return "";
}

describe("a study file", () => {
  it("becomes the specification that the command line makes of it", () => {
    expect(toSpec(read(FILE), SPACE)).toEqual({
      space: {
        parameters: [
          { name: "n", type: "int", min: 1, max: 8, default: 4 },
          { name: "block", type: "ordinal", values: [4, 16, 64], default: 16 },
        ],
      },
      objectives: [{ metric: "seconds", goal: "minimize", unit: "s" }],
      algorithm: { name: "auto" },
      pruning: [{ name: "default" }, { name: "limit", options: { seconds: 60 } }],
      final_check: {},
      budget: { max_trials: 30, max_seconds: 120 },
      execution: { component: "gcc-flags", application: "kernels", trial_timeout_seconds: 60 },
      start_from: ["flags-1"],
    });
  });

  it("describes a parameter anew that gets another type", () => {
    const file = read("component: c\nparameters: {n: {type: ordinal, values: [1, 2]}}\nobjectives: [{maximize: rate}]");
    expect(toSpec(file, SPACE).space.parameters[0]).toEqual({ name: "n", type: "ordinal", values: [1, 2] });
  });

  it("comes back from a study that is cloned", () => {
    const { spec } = makeStudy();
    const text = write(fromSpec("copy", spec));
    expect(text.split("\n").slice(0, 3)).toEqual(["name: copy", "parameters:", "  x: {type: float, min: 0, max: 1, default: 0.5}"]);
    const again = toSpec(read(text));
    expect(again.space.parameters).toEqual(spec.space.parameters);
    expect(again.objectives).toEqual(spec.objectives);
    expect(again.budget).toEqual({ max_trials: 20 });
    expect(toSpec(read(write(fromSpec("copy", { ...spec, start_from: ["a", "b"] })))).start_from).toEqual(["a", "b"]);
    const onAgents = { ...spec, execution: { component: "c", application: "", digest: "d", parallelism: 3, trial_timeout_seconds: null } };
    expect(toSpec(read(write(fromSpec("copy", onAgents))), spec.space.parameters).execution).toEqual({ component: "c", digest: "d", parallelism: 3 });
  });

  it.each([
    ["objectives: {a: 1}", "objectives"],
    ["objectives: [{minimize: a, maximize: b}]", "objectives[0]"],
    ["colour: red", "colour"],
    ["component: c\nparameters: {m: {max: 1}}", "parameters.m"],
    ["component: c\nonly: [m]", "only"],
    ["budget: {max_time: soon}", "budget.max_time"],
    ["parameters: {x: 3}", "parameters.x"],
    ["a: [1", "line 1"],
    ["- a", "the file"],
  ])("%s is refused at its place", (text, field) => {
    expect(fault(() => toSpec(read(text), SPACE))).toBe(field);
  });
});

describe("edit", () => {
  it("changes one value and leaves comments and the other lines alone", () => {
    const text = edit(FILE, ["budget", "max_trials"], 60);
    expect(text.split("\n").filter((line) => !FILE.includes(line))).toEqual(["budget: {max_trials: 60, max_time: 2m}"]);
    expect(text).toContain("# tonight");
    expect(text).toContain("# the flags");
  });
  it("makes what stands on the way", () => {
    expect(read(edit("", ["parameters", "n", "max"], 8))).toEqual({ parameters: { n: { max: 8 } } });
    expect(read(edit("budget:\n", ["budget", "max_trials"], 8))).toEqual({ budget: { max_trials: 8 } });
  });
  it("takes a value away, and what is empty without it", () => {
    expect(read(edit("a: 1\nparameters:\n  n:\n    max: 8\n", ["parameters", "n", "max"], undefined))).toEqual({ a: 1 });
    expect(read(edit("a: 1\n", ["b", "c"], undefined))).toEqual({ a: 1 });
    expect(read(edit("a: 1\nstart_from: [b]\n", ["start_from", 0], undefined))).toEqual({ a: 1 });
  });
  it("joins and leaves a list whose other items keep their lines and comments", () => {
    const text = "start_from:\n  - a # the first\n  # of last week\n  - b\nseed: 1\n";
    expect(edit(text, ["start_from", 2], "c")).toBe("start_from:\n  - a # the first\n  # of last week\n  - b\n  - c\nseed: 1\n");
    expect(edit(text, ["start_from", 0], undefined)).toBe("start_from:\n  # of last week\n  - b\nseed: 1\n");
  });
});

describe("seconds", () => {
  it.each([
    [90, 90],
    ["2m", 120],
    ["1.5 h", 5400],
    ["1d", 86400],
    ["45", 45],
  ])("%s is %d s", (text, value) => {
    expect(seconds("t", text)).toBe(value);
  });
});
