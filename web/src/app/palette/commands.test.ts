import { expect, it } from "vitest";
import { meantBy, namesNone, score, STUDY_COMMANDS, valueOf } from "./commands";

function matches(name: string, typed: string): string[] {
  return STUDY_COMMANDS.filter((command) => score(valueOf(name, command), typed) > 0).map(({ text }) => text(name));
}

it("splits a command into the states and the name of its studies", () => {
  expect(meantBy("pause IO-path")).toEqual({ states: ["ACTIVE"], name: "io-path" });
  expect(meantBy(" Resume ")).toEqual({ states: ["PAUSED"], name: "" });
  expect(meantBy("stop io-path …")).toEqual({ states: ["ACTIVE", "PAUSED"], name: "io-path" });
  expect(meantBy("io-path")).toEqual({ states: [], name: "io-path" });
});

it("recognises a command without a name", () => {
  expect(["", "sto", "Pause "].map(namesNone)).toEqual([true, true, true]);
  expect(["io-path", "pause io-path", "io-path pau"].map(namesNone)).toEqual([false, false, false]);
});

it("finds commands of a study by their shown words only, and an exact match first", () => {
  expect(matches("io-path", "st")).toEqual(["Stop io-path …"]);
  expect(matches("test", "st")).toEqual(["Stop test …"]);
  expect(matches("io-path", "step")).toEqual([]);
  expect(matches("io-path", "change")).toEqual([]);
  // Letters in this order are not enough.
  expect(matches("io-path", "pse io")).toEqual([]);
  expect(matches("io-path", "pause path")).toEqual(["Pause io-path"]);
  const [pause] = STUDY_COMMANDS;
  const scoreOf = (name: string) => (pause === undefined ? NaN : score(valueOf(name, pause), "pause io-1"));
  expect(scoreOf("io-1")).toBeGreaterThan(scoreOf("io-10"));
});

it("finds other items by their texts, or by their values if they have no texts", () => {
  expect(score("component:gcc", "component", ["gcc"])).toBe(0);
  expect(score("component:gcc", "gc", ["gcc"])).toBeGreaterThan(0);
  expect(score("Home", "ho", [])).toBeGreaterThan(0);
});
