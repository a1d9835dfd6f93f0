import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { csvText } from "./SelectedTrials";

it("has exact numbers, quoted texts, and no formulas", () => {
  const trials = [
    makeTrial({ number: 1, params: { size: 1048576, mode: "=cmd()" }, metrics: { t: 1234.56789012 } }),
    makeTrial({ number: 2, params: { size: 4 }, metrics: null, state: "FAILED", reason: 'said "no", twice' }),
  ];
  const [head, first, second] = csvText(trials).split("\r\n");
  expect(head).toMatch(/^number,state,.*,metric:t,param:size,param:mode$/);
  expect(first).toMatch(/^1,COMPLETED,.*,1234.56789012,1048576,'=cmd\(\)$/);
  expect(second).toMatch(/^2,FAILED,suggested,"said ""no"", twice",.*,,4,$/);
});

it.each([
  ["=1", "'=1"],
  [" =1", "' =1"],
  ["\uff1d1", "'\uff1d1"],
  ["a;=1", "a;'=1"],
  ["a; -1", "a;' -1"],
  ["a\n@x", '"a\n\'@x"'],
  ["a;b", "a;b"],
  ["a=1", "a=1"],
])("writes %j as %s", (mode, cell) => {
  const [, row] = csvText([makeTrial({ number: 1, params: { mode }, metrics: {} })]).split("\r\n");
  expect(row?.endsWith(`,${cell}`)).toBe(true);
});
