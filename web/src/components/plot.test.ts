import { expect, it } from "vitest";
import { zoomedOf } from "./plot";

it("returns the parts of the axes that are shown, and nothing of an axis that is shown as a whole", () => {
  expect(zoomedOf([])).toEqual({ x: null, y: null });
  const all = { start: 0, end: 100, startValue: 0, endValue: 50 };
  const part = { start: 20, end: 60, startValue: 10, endValue: 30 };
  expect(zoomedOf([{ ...all, xAxisIndex: [0, 1] }, { ...part, yAxisIndex: 0 }])).toEqual({ x: null, y: [10, 30] });
  expect(zoomedOf([{ ...part, xAxisIndex: [0, 1] }, { ...all, yAxisIndex: [0] }])).toEqual({ x: [10, 30], y: null });
  expect(zoomedOf([{ ...part, xAxisIndex: [1] }])).toEqual({ x: null, y: null });
});
