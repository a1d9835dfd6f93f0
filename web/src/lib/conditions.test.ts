import { expect, it } from "vitest";
import { parse, select, type Columns } from "./conditions";

interface Agent {
  name: string;
  slots: number | null;
}
const columns: Columns<Agent> = { name: { text: ({ name }) => name }, slots: { number: ({ slots }) => slots }, "a<b": { text: ({ name }) => name } };
const agents: Agent[] = [
  { name: "node-a", slots: 16 },
  { name: "Node-B", slots: 2 },
  { name: "login", slots: null },
];
const names = (...where: string[]) => select(agents, where, columns).rows.map(({ name }) => name);

it("is read with and without spaces, and with an operator in the name of the column", () => {
  expect(parse("slots>=8")).toEqual({ column: "slots", operator: ">=", value: "8" });
  expect(parse(" a<b != c < d ")).toEqual({ column: "a<b", operator: "!=", value: "c < d" });
  expect(parse("fast ones")).toBeNull();
});

it("compares numbers as numbers, and texts without case", () => {
  expect(names("slots > 8")).toEqual(["node-a"]);
  expect(names("name = NODE-B")).toEqual(["Node-B"]);
  expect(names("name ~ node", "slots <= 2")).toEqual(["Node-B"]);
  expect(names("slots != 16")).toEqual(["Node-B", "login"]);
  expect(names()).toHaveLength(3);
});

it("names the condition that does not fit", () => {
  for (const wrong of ["slot > 8", "slots > many", "slots >", "slots ~ 1", "name < b", "toString = 1", "fast ones"]) {
    expect(select(agents, ["name ~ n", wrong], columns)).toEqual({ rows: [], wrong });
  }
});
