import { expect, it } from "vitest";
import { simulated } from "./sample";

it("rewards the better settings of the sample", () => {
  const start = { threads: 4, cache_mb: 16, compression: "strong", keep_alive: false };
  const best = { threads: 12, cache_mb: 256, compression: "fast", keep_alive: true };
  expect(simulated(best, 1)).toBeLessThan(0.5 * simulated(start, 0));
});
