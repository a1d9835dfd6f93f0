import { expect, it } from "vitest";
import { itemOf } from "./LearningCurves";

it("describes a curve by its extent and its last point", () => {
  expect(itemOf({ trial: 7, state: "PRUNED", steps: [1, 5, 9], values: [3, 1, 2] })).toEqual({ value: [1, 9, 1, 3], trial: 7, state: "PRUNED", last: [9, 2] });
});
