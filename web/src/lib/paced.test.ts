import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Paced } from "./paced";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("runs the first request at once, and all requests during a run as one more run", async () => {
  let runs = 0;
  const paced = new Paced(() => Promise.resolve((runs += 1)), 2000);
  for (let asked = 0; asked < 50; asked += 1) paced.ask();
  expect(runs).toBe(1);
  await vi.advanceTimersByTimeAsync(1999);
  expect(runs).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(runs).toBe(2);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(runs).toBe(2);
  paced.ask();
  expect(runs).toBe(3);
});

test("goes on after a failure, and ends when it is stopped", async () => {
  let runs = 0;
  const paced = new Paced(() => {
    runs += 1;
    return Promise.reject(new Error("away"));
  }, 10);
  paced.ask();
  await vi.advanceTimersByTimeAsync(20);
  paced.ask();
  expect(runs).toBe(2);
  paced.stop();
  paced.ask();
  await vi.advanceTimersByTimeAsync(20);
  paced.ask();
  expect(runs).toBe(2);
});
