import { expect, test } from "vitest";
import { pullCommand } from "./Files";

test("names the version, and quotes what the user has typed", () => {
  expect(pullCommand("sorter", " tune.example:8471 ", "ab12")).toBe(
    "trimtab-agent pull sorter \\\n    --server tune.example:8471 \\\n    --components ./components \\\n    --digest ab12",
  );
  expect(pullCommand("s", "a; rm -r", "ab")).toContain("--server 'a; rm -r'");
});
