import { describe, expect, it } from "vitest";
import { quoted } from "@/lib/words";
import { enrolmentCommand, isAddress } from "./Enrol";

describe("enrolmentCommand", () => {
  it("leaves plain words alone and quotes the others", () => {
    expect(enrolmentCommand(" tune.example.org:443 ", "tre_a1")).toBe(
      "TRIMTAB_ENROL_TOKEN=tre_a1 trimtab-agent run \\\n    --server tune.example.org:443 \\\n    --components ./components",
    );
    expect(quoted("a b;rm")).toBe("'a b;rm'");
    expect(quoted("it's")).toBe(`'it'\\''s'`);
    expect(quoted("")).toBe("''");
  });
});

describe("isAddress", () => {
  it.each(["tune.example.org:443", " 127.0.0.1:8471 ", "[::1]:8471"])("takes %s", (text) => expect(isAddress(text)).toBe(true));
  it.each(["", "tune.example.org", "http://x:1", "a b:1", "x:0", "x:65536"])("does not take %s", (text) => expect(isAddress(text)).toBe(false));
});
