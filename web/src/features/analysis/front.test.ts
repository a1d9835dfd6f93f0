import { expect, it } from "vitest";
import { frontOf, project } from "./front";

const time = { metric: "time", goal: "minimize" as const };
const rate = { metric: "rate", goal: "maximize" as const };

it("keeps what nothing dominates, from the best of the first objective on", () => {
  const points = [
    { time: 3, rate: 30 },
    { time: 1, rate: 10 },
    { time: 2, rate: 5 },
    { time: 2, rate: 20 },
    { time: 4, rate: 30 },
    { time: 1, rate: 10 },
    { time: 0, rate: NaN },
  ];
  expect(frontOf(points, [time, rate])).toEqual([1, 5, 3, 0]);
  expect(frontOf(points, [time])).toEqual([6]);
  expect(frontOf([], [time, rate])).toEqual([]);
});

it("looks at the cube from the front, and from the side after a quarter turn", () => {
  const [x, y] = project([1, 0.5, 0], 0, 0);
  expect([x, y]).toEqual([0.5, -0.5]);
  expect(project([0.5, 1, 0.5], 90, 0)[0]).toBeCloseTo(0.5);
  expect(project([0.5, 0.5, 0.5], 33, 70)).toEqual([0, 0]);
});
