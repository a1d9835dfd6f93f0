import { expect, it } from "vitest";
import type { Agent } from "@/lib/api/client";
import { hostsOf, matches, obstacleOf } from "./hosts";

function makeAgent(name: string, policy: Record<string, string>, online = true): Agent {
  return { agent_id: name, name, online, policy } as unknown as Agent;
}

it("knows the hosts that answer submissions by their rules", () => {
  const agents = [makeAgent("b", { "matching.mode": "apply", "matching.control_share": "0.05" }), makeAgent("trials", { studies: "none" }), makeAgent("a", { "matching.mode": "off" }, false)];
  expect(hostsOf(agents).map(({ name, mode, controlShare }) => [name, mode, controlShare])).toEqual([
    ["a", "off", ""],
    ["b", "apply", "0.05"],
  ]);
});

it("says what keeps a host from applying settings", () => {
  const rules = { "matching.mode": "apply", "matching.users": "ann, proj-*", "matching.partitions": "main", "matching.components": "sro" };
  const obstacle = (changes: Record<string, string>, user = "proj-1", partition = "main", component = "sro", online = true) =>
    hostsOf([makeAgent("a", { ...rules, ...changes }, online)]).map((host) => obstacleOf(host, { user, partition }, component))[0];
  expect(obstacle({})).toBeNull();
  expect(obstacle({}, "bob")).toBe("user");
  expect(obstacle({}, "ann", "long")).toBe("partition");
  expect(obstacle({}, "ann", "main", "mpi")).toBe("component");
  expect(obstacle({ "matching.components": "none" })).toBe("component");
  expect(obstacle({ "matching.mode": "dry_run" })).toBe("dry_run");
  expect(obstacle({}, "ann", "main", "sro", false)).toBe("offline");
});

it("compares shell patterns with whole texts", () => {
  const cases: [string, string, boolean][] = [
    ["proj-*", "proj-1", true],
    ["proj-*", "my-proj-1", false],
    ["a?c", "abc", true],
    ["a.c", "abc", false],
    ["[ab]x", "bx", true],
    ["[!ab]x", "bx", false],
    ["[z-a]", "b", false],
    ["a|b", "a", false],
  ];
  for (const [pattern, text, expected] of cases) expect(matches(pattern, text), `${pattern} ${text}`).toBe(expected);
});
