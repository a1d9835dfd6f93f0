import { expect, it } from "vitest";
import { interferenceText } from "./interference";

it("says what others took and how long the run waited", () => {
  expect(interferenceText({ share: 0.4812, wait: 0.12 })).toBe("Other processes took 48.1\u202f% of the CPUs; the run waited 12.0\u202f% of its time.");
});

it("leaves out what the agent cannot measure", () => {
  expect(interferenceText({ share: 0.004 })).toBe("Other processes took 0\u202f% of the CPUs.");
  expect(interferenceText({ memory: 0.5 })).toBe("");
});
