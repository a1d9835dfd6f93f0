import { describe, expect, it } from "vitest";
import { quoted } from "@/lib/shell";
import { enrolmentCommand } from "./command";

describe("enrolmentCommand", () => {
  it("leaves plain words alone and quotes the others", () => {
    expect(enrolmentCommand(" tune.example.org:443 ", "tre_a1")).toContain("--server tune.example.org:443 \\\n    --enrol tre_a1 \\\n");
    expect(quoted("a b;rm")).toBe("'a b;rm'");
    expect(quoted("it's")).toBe(`'it'\\''s'`);
    expect(quoted("")).toBe("''");
  });
});
