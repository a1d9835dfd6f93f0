import { expect, test } from "vitest";
import { faultOf, missingArgument, proposed, tuneCommand, type Choice } from "./command";
import type { Place } from "./api";

const PLACES: Place[] = [
  { name: "cpus_per_task", kind: "option", target: "cpus-per-task", value: "4", line: 1, fixed: false },
  { name: "tile", kind: "env", target: "TILE", value: "64", line: 2, fixed: true },
  { name: "argument2", kind: "argument", target: "2", value: "", line: 3, fixed: false },
  { name: "argument1", kind: "argument", target: "1", value: "", line: 3, fixed: false },
  { name: "unroll", kind: "env", target: "unroll", value: "", line: 3, fixed: false },
];

function choice(target: string, values: string, start: string): Choice {
  const place = PLACES.find((one) => one.target === target);
  if (place === undefined) throw new Error(target);
  return { place, values, start };
}

const TIME = { name: "rate", pattern: null, goal: "maximize" } as const;

test("names each value and how it reaches the script, with arguments in their order", () => {
  const choices = [choice("2", "a,b", "b"), choice("cpus-per-task", "1..16", "4"), choice("1", "1, 2", "1"), choice("TILE", "16,32,64", "64"), choice("unroll", "1,2", "")];
  expect(tuneCommand({ file: "my job.sh", choices, metric: { name: "rate", pattern: "rate: (\\S+)", goal: "maximize" }, trials: 40, parallel: 2 })).toBe(
    [
      "trimtab tune-sbatch 'my job.sh'",
      "--param cpus_per_task=1..16:4",
      "--pass 'cpus_per_task=option:--cpus-per-task={value}'",
      "--param tile=16,32,64:64",
      "--pass tile=env:TILE",
      "--param unroll=1,2",
      "--param argument1=1,2",
      "--pass argument1=argument",
      "--param argument2=a,b:b",
      "--pass argument2=argument",
      "--metric 'rate=regex:rate: (\\S+)'",
      "--maximize rate",
      "--trials 40",
      "--parallel 2",
    ].join(" \\\n    "),
  );
});

test("leaves out what is the command's default", () => {
  expect(tuneCommand({ file: "job.sh", choices: [choice("unroll", "1..8", "")], metric: TIME, trials: 30, parallel: 1 })).toBe(
    "trimtab tune-sbatch job.sh \\\n    --param unroll=1..8 \\\n    --trials 30",
  );
});

test("finds what the command would refuse", () => {
  const fault = (values: string, start: string) => faultOf(choice("TILE", values, start));
  expect(fault("16..128", "64")).toBeUndefined();
  expect(fault("0.5..2", "")).toBeUndefined();
  expect(fault("fast,safe", "safe")).toBeUndefined();
  expect(fault("16..", "64")).toContain("1..16");
  expect(fault("128..16", "64")).toContain("smaller");
  expect(fault("16..32", "64")).toContain("not in the range");
  expect(fault("16..32", "x")).toContain("no number");
  expect(fault("64", "64")).toContain("at least two");
  expect(fault("16,32", "64")).toContain("not among");
  expect(fault("16,16", "16")).toContain("once");
  expect(fault("a:b,c", "c")).toContain("colon");
});

test("proposes values around the present one", () => {
  expect([proposed("4"), proposed("1"), proposed("0.5"), proposed("fast"), proposed("")]).toEqual(["1..16", "1..4", "0.125..2", "fast", ""]);
});

test("asks for the arguments before the chosen one", () => {
  expect(missingArgument([choice("2", "a,b", "")])).toBe(1);
  expect(missingArgument([choice("2", "a,b", ""), choice("1", "1,2", "")])).toBeUndefined();
  expect(missingArgument([choice("TILE", "1,2", "")])).toBeUndefined();
});
