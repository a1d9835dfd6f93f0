import { expect, it } from "vitest";
import { allowed, colouring, dragged, frontOf, membersOf, project, sizeOf } from "./front";

const time = { metric: "time", goal: "minimize" as const };
const rate = { metric: "rate", goal: "maximize" as const };

it("returns the points that no other dominates, the best of the first objective first", () => {
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

it("returns the points of the Pareto set that the service knows, in the order of the first objective", () => {
  const points = [7, 8, 9].map((number) => ({ number, values: { time: 10 - number } }));
  expect(membersOf(points, [9, 7, 99], "time")).toEqual([2, 0]);
  expect(membersOf(points, [], "time")).toBeUndefined();
  expect(membersOf(points, undefined, "time")).toBeUndefined();
});

it("shows the cube from the front, and from the side after a quarter turn", () => {
  const [x, y] = project([1, 0.5, 0], 0, 0);
  expect([x, y]).toEqual([0.5, -0.5]);
  expect(project([0.5, 1, 0.5], 90, 0)[0]).toBeCloseTo(0.5);
  expect(project([0.5, 0.5, 0.5], 33, 70)).toEqual([0, 0]);
});

it("moves the cube's front with the pointer, without limit around and up to its faces vertically", () => {
  const view = { turn: 0, tilt: 0 };
  const front = ({ turn, tilt }: typeof view) => project([0.5, 0, 0.5], turn, tilt);
  expect(front(dragged(view, 40, 0))[0]).toBeGreaterThan(0);
  expect(front(dragged(view, -40, 0))[0]).toBeLessThan(0);
  // The vertical axis of the plot points up.
  expect(front(dragged(view, 0, 40))[1]).toBeLessThan(0);
  expect(front(dragged(view, 0, -40))[1]).toBeGreaterThan(0);
  expect(dragged({ turn: -170, tilt: 80 }, 40, 400)).toEqual({ turn: 170, tilt: 90 });
  expect(dragged({ turn: 170, tilt: -80 }, -40, -400)).toEqual({ turn: -170, tilt: -90 });
  expect(dragged({ turn: 25, tilt: 10 }, 720, 0)).toEqual({ turn: 25, tilt: 10 });
});

const palette = { scale: ["rgb(0, 0, 0)", "rgb(100, 100, 100)"], series: ["red", "green"], soft: "grey" };

it("shades numbers by their place on the scale of the parameter", () => {
  const colour = colouring(palette, { name: "n", type: "int", min: 1, max: 100, log: true });
  expect([colour(1), colour(10), colour(100), colour(1000), colour(undefined)]).toEqual(["rgb(0, 0, 0)", "rgb(50, 50, 50)", "rgb(100, 100, 100)", "grey", "grey"]);
});

it("gives choices distinct colours", () => {
  const colour = colouring(palette, { name: "mode", type: "categorical", values: ["a", "b"] });
  expect([colour("a"), colour("b"), colour("c")]).toEqual(["red", "green", "grey"]);
});

it("lets the area of a point grow evenly with the value, within the range", () => {
  const parameter = { name: "n", type: "int", min: 0, max: 10 } as const;
  const areas = [0, 5, 10].map((value) => sizeOf(parameter, value) ** 2);
  expect(areas.map(Math.round)).toEqual([25, 213, 400]);
  expect([sizeOf(parameter, 1000), sizeOf(parameter, undefined)]).toEqual([20, 5]);
});

it("has no point on a front that breaks an outcome constraint", () => {
  const measured = [
    { number: 1, values: { time: 1 }, isAllowed: false },
    { number: 2, values: { time: 2 } },
  ];
  expect(frontOf(allowed(measured), [{ metric: "time", goal: "minimize" }])).toEqual([1]);
});
