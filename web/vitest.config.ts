import { join } from "node:path";
import { lingui } from "@lingui/vite-plugin";
import { defineConfig } from "vitest/config";
import { macros } from "./macros.ts";

export default defineConfig({
  plugins: [macros(), lingui()],
  resolve: { alias: { "@": join(import.meta.dirname, "src") } },
  // Milliseconds: a test that takes longer hangs, even on a busy machine.
  test: { include: ["src/**/*.test.{ts,tsx}"], setupFiles: ["src/testing/setup.ts"], testTimeout: 60_000, hookTimeout: 60_000 },
});
