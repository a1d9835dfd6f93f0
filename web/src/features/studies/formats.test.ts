import { expect, it } from "vitest";
import { parse } from "yaml";
import { commandText, differenceText, exportText, optionText, variableText, yamlText } from "./formats";

const params = { threads: 1048576, n: 0.1, mode: "it's = fast", huge: false, "odd key:": "no" };

it("writes YAML that reads as the same values", () => {
  expect(parse(yamlText(params))).toEqual(params);
  expect(parse(yamlText(params), { version: "1.1" })).toEqual(params);
  expect(yamlText({})).toBe("");
});

it("quotes what a shell would interpret", () => {
  expect(optionText({ threads: 1048576, mode: "a b" })).toBe("--threads=1048576 '--mode=a b'");
  expect(variableText({ threads: 1048576, mode: "it's" })).toBe("threads=1048576\nmode='it'\\''s'\n");
  const invocation = {
    commands: [
      { step: "build", argv: ["make", "-j 4"], environment: { CFLAGS: "-O3 -g" } },
      { step: "command", argv: ["./run"], environment: { CFLAGS: "-O2" } },
    ],
    folder: "/tmp",
    host: "node-1",
    script: "",
    scheduler_options: [],
  };
  expect(commandText(invocation)).toBe("CFLAGS='-O3 -g' make '-j 4'\nCFLAGS=-O2 ./run");
  expect(exportText(invocation)).toBe("export CFLAGS=-O2\n");
});

it("lists only what differs, also parameters that only one side has", () => {
  expect(differenceText({ cache: 11, mode: "a", new: 1 }, { cache: 8, mode: "a", old: true }, { cache: "MiB" })).toBe("cache: 8 → 11\u202fMiB\nold: true → —\nnew: — → 1\n");
});
