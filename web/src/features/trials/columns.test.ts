import { expect, it } from "vitest";
import { makeStudy, makeTrial } from "@/testing/factories";
import { columnsOf, usualColumns } from "./columns";

const { spec } = makeStudy();

it("offers every metric that a trial has, and every parameter", () => {
  const columns = columnsOf(spec, [makeTrial({ metrics: { seconds: 1, watts: 3 } })]);
  expect(columns.slice(0, 5)).toEqual(["metric:seconds", "metric:watts", "differences", "param:x", "param:n"]);
});

it("shows a few parameters as columns, and else the differences from the default", () => {
  expect(usualColumns(spec)).toEqual(["metric:seconds", "param:x", "param:n", "agent", "duration"]);
  const parameters = Array.from({ length: 9 }, (_, index) => ({ name: `p${index}`, type: "bool" as const }));
  expect(usualColumns({ ...spec, space: { parameters } })).toEqual(["metric:seconds", "differences", "agent", "duration"]);
});
