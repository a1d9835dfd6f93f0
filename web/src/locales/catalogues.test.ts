import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const FOLDER = import.meta.dirname;
const AGAIN = "Run `npm run texts` in web/ and translate what is new";

/** Return the translations of a PO file by their texts. An empty translation is shown in English. */
function read(name: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const block of readFileSync(join(FOLDER, name), "utf8").split("\n\n")) {
    const text = entry(block, "msgid");
    if (text) found.set(text, entry(block, "msgstr"));
  }
  return found;
}

function entry(block: string, key: string): string {
  const [, lines = ""] = new RegExp(`^${key} ((?:"[^\\n]*"\\n?)+)`, "m").exec(block) ?? [];
  return lines
    .trim()
    .split("\n")
    .map((line) => (line === "" ? "" : (JSON.parse(line) as string)))
    .join("");
}

/** Return the names of the values and elements in a text, each once; those within the cases of a plural also. */
function places(text: string): string[] {
  const found = new Set([...text.matchAll(/<\/?\d+\/?>/g)].map(([tag]) => tag));
  let at = 0;
  function inside(): void {
    while (at < text.length && text[at] !== "}") {
      if (text[at] === "{") argument();
      else at += 1;
    }
  }
  function argument(): void {
    const [whole = "", name = "", cases] = /^\{(\w+)(, plural,)?/.exec(text.slice(at)) ?? [];
    found.add(name);
    at += whole.length;
    while (cases !== undefined && at < text.length && text[at] !== "}") {
      if (text[at] === "{") {
        at += 1;
        inside();
      }
      at += 1;
    }
    at += 1;
  }
  inside();
  return [...found].sort();
}

describe("the German catalogue", () => {
  const german = read("de.po");
  const translated = [...german].filter(([, translation]) => translation !== "");

  // The build collects the English texts; without one there is nothing to compare with.
  it.skipIf(!existsSync(join(FOLDER, "en.po")))("has the texts of the English one", () => {
    expect([...german.keys()].sort(), AGAIN).toEqual([...read("en.po").keys()].sort());
  });

  it("has the same values and elements in each translation", () => {
    expect(translated.filter(([text, translation]) => places(text).join() !== places(translation).join())).toEqual([]);
  });

  it("has a translation of nearly all texts", ({ annotate }) => {
    const missing = [...german.keys()].filter((text) => german.get(text) === "");
    void annotate(`Not translated, and shown in English:\n${missing.join("\n")}`);
    expect(translated.length / german.size).toBeGreaterThan(0.9);
  });

  it("finds a wrong value within a plural", () => {
    expect(places("{0, plural, one {# of {name}} other {# of {name} <0/>}} and {1}")).toEqual(["0", "1", "<0/>", "name"]);
    expect(places("{0, plural, one {trial} other {trials}}")).toEqual(["0"]);
  });
});
