import { expect, it } from "vitest";
import { makeTrial } from "@/testing/factories";
import { linked } from "./linked";

const trials = [
  makeTrial({ number: 1, params: { n: 4, mode: "a" }, metrics: { seconds: 9 } }),
  makeTrial({ number: 2, params: { n: 8, mode: "b" }, metrics: { seconds: 7 } }),
  makeTrial({ number: 3, params: { n: 16, mode: "b" }, metrics: null }),
];
const numbers = (...where: string[]) => linked(trials, where, new Date()).map(({ number }) => number);

it("shows the trials of the table in the plots", () => {
  expect(numbers()).toEqual([1, 2, 3]);
  expect(numbers("number >= 2", "param:mode = b")).toEqual([2, 3]);
  expect(numbers("metric:seconds <= 8")).toEqual([2]);
  expect(numbers("param:n > 4", "number < 3")).toEqual([2]);
});

it("shows all for a condition that only the service can read", () => {
  expect(numbers("metric:watts > 3")).toEqual([1, 2, 3]);
});
