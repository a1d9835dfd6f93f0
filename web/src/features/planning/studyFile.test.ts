import { describe, expect, it } from "vitest";
import { edit, FileFault, lineOf, read } from "./studyFile";

const FILE = `# tonight
component: gcc-flags # the flags
budget: {max_trials: 30, max_time: 2m}
`;

describe("read", () => {
  it.each([
    ["a: [1", "line 1"],
    ["a: 1\na: 2", "line 2"],
    ["- a", "the file"],
  ])("%s is refused at its place", (text, field) => {
    expect(() => read(text)).toThrow(FileFault);
    expect(() => read(text)).toThrow(field);
  });
});

describe("edit", () => {
  it("changes one value and leaves comments and the other lines alone", () => {
    const text = edit(FILE, ["budget", "max_trials"], 60);
    expect(text.split("\n").filter((line) => !FILE.includes(line))).toEqual(["budget: {max_trials: 60, max_time: 2m}"]);
    expect(text).toContain("# tonight");
    expect(text).toContain("# the flags");
  });
  it("makes the mappings on the way", () => {
    expect(read(edit("", ["parameters", "n", "max"], 8))).toEqual({ parameters: { n: { max: 8 } } });
    expect(read(edit("budget:\n", ["budget", "max_trials"], 8))).toEqual({ budget: { max_trials: 8 } });
  });
  it("removes a value, and what is empty without it", () => {
    expect(read(edit("a: 1\nparameters:\n  n:\n    max: 8\n", ["parameters", "n", "max"], undefined))).toEqual({ a: 1 });
    expect(read(edit("a: 1\n", ["b", "c"], undefined))).toEqual({ a: 1 });
    expect(read(edit("a: 1\nstart_from: [b]\n", ["start_from", 0], undefined))).toEqual({ a: 1 });
  });
  it("adds to and removes from a list whose other items keep their lines and comments", () => {
    for (const note of ["a\n\nb", "a\n", "5", " # x \n\ty", `${"long ".repeat(40)}\nline`, "- a: *b*"]) {
      expect(read(edit("a: 1\n", ["description"], note)).description).toBe(note);
    }
    const text = "start_from:\n  - a # the first\n  # of last week\n  - b\nseed: 1\n";
    expect(edit(text, ["start_from", 2], "c")).toBe("start_from:\n  - a # the first\n  # of last week\n  - b\n  - c\nseed: 1\n");
    expect(edit(text, ["start_from", 0], undefined)).toBe("start_from:\n  # of last week\n  - b\nseed: 1\n");
  });
});

it("finds the line of a field, or of the nearest field around it", () => {
  const text = "# a\nobjectives: [{minimize: s}]\nparameters:\n  n:\n    type: int\n    min: 3\nbugdet: {}\n";
  expect(lineOf(text, "objectives[0].minimize")).toBe(2);
  expect(lineOf(text, "parameters.n.min")).toBe(6);
  expect(lineOf(text, "parameters.n.max")).toBe(4);
  expect(lineOf(text, "bugdet")).toBe(7);
  expect(lineOf(text, "budget.max_trials")).toBeUndefined();
  expect(lineOf(text, "")).toBeUndefined();
});
