import { describe, expect, it } from "vitest";
import { init } from "./echarts";
import { isolinesOf, pathOf, gapFor } from "./isolines";
import { isolines } from "./plot";

const EVEN = [0, 0.25, 0.5, 0.75, 1];
const grid = (value: (x: number, y: number) => number, columns = EVEN, rows = EVEN) => ({
  columns,
  rows,
  values: columns.map((x) => rows.map((y) => value(x, y))),
});

describe("isolinesOf", () => {
  it("draws straight lines from edge to edge of a slope, at round levels", () => {
    const lines = isolinesOf(grid((x) => 100 * x));
    expect(lines.map(({ level }) => level)).toEqual([20, 40, 60, 80]);
    for (const { level, points } of lines) {
      for (const [x] of points) expect(x).toBeCloseTo(level / 100, 12);
      expect(points.map(([, y]) => y).sort((a, b) => a - b)).toEqual(EVEN);
    }
  });

  it("puts the first and second parameter on their own axes, whatever the spacing of their levels", () => {
    // Integers are unevenly spaced on a logarithmic axis.
    const rows = [0, 0.4, 0.6, 1];
    const lines = isolinesOf(grid((_, y) => y, EVEN, rows));
    expect(lines).not.toHaveLength(0);
    for (const { level, points } of lines) for (const [, y] of points) expect(y).toBeCloseTo(level, 12);
  });

  it("closes a line around a maximum and leaves it open at the edge", () => {
    const around = isolinesOf(grid((x, y) => -Math.hypot(x - 0.5, y - 0.5)));
    const closed = around.filter(({ points }) => points[0]?.[0] === points.at(-1)?.[0] && points[0]?.[1] === points.at(-1)?.[1]);
    expect(closed.length).toBeGreaterThan(0);
    // Each level is cut off in every corner, which gives four lines.
    const corners = around.filter(({ level }) => level === -0.6);
    expect(corners).toHaveLength(4);
    for (const { points } of corners) {
      for (const end of [points[0], points.at(-1)]) expect(end?.some((one) => one === 0 || one === 1)).toBe(true);
    }
  });

  it("finds none if all values are equal or there is only one level", () => {
    expect(isolinesOf(grid(() => 3))).toEqual([]);
    expect(isolinesOf(grid((x) => x, EVEN, [0.5]))).toEqual([]);
  });
});

describe("gapFor", () => {
  it("is in the middle of a straight line, and away from another label", () => {
    const line = pathOf([
      [0, 0],
      [200, 0],
    ]);
    expect(gapFor(line, 40, [], [])).toBe(80);
    const start = gapFor(line, 40, [[100, 3]], []) ?? NaN;
    expect(Math.abs(start + 20 - 100)).toBeGreaterThanOrEqual(39);
  });

  it("is where the label covers no other line", () => {
    const line = pathOf([
      [0, 0],
      [200, 0],
    ]);
    // A steep line crosses; a parallel line is far enough away.
    const start = gapFor(line, 40, [], [[110, -5], [110, 0], [110, 5], ...[20, 60, 100, 140].map((x): [number, number] => [x, 12])]) ?? NaN;
    expect(start + 40 <= 110).toBe(true);
    expect(gapFor(line, 40, [], Array.from({ length: 40 }, (_, index) => [5 * index, 6]))).toBeUndefined();
  });

  it("is not around a corner, and nowhere on a line that is too short", () => {
    const corner = pathOf([
      [0, 0],
      [100, 0],
      [100, 200],
    ]);
    const start = gapFor(corner, 40, [], []) ?? NaN;
    expect(start >= 95 || start + 40 <= 105).toBe(true);
    expect(gapFor(pathOf([[0, 0], [70, 0]]), 40, [], [])).toBeUndefined();
  });
});

it("writes each level once or more into a drawing, above the points", () => {
  const chart = init(null, null, { renderer: "svg", ssr: true, width: 500, height: 400 });
  chart.setOption({
    xAxis: { type: "value", min: 0, max: 1 },
    yAxis: { type: "value", min: 0, max: 1 },
    series: [
      isolines({ grid: grid((x, y) => 40 * x + 60 * y), marks: [[0.5, 0.5]], write: (level, step) => `${level} by ${step}` }),
      { type: "scatter", data: [[0.5, 0.5]], itemStyle: { color: "#123456" } },
    ],
  });
  const drawing = chart.renderToSVGString();
  chart.dispose();
  for (const level of [20, 40, 60, 80]) expect(drawing.lastIndexOf(`${level} by 20</text>`)).toBeGreaterThan(drawing.lastIndexOf("#123456"));
});
