import { expect, it } from "vitest";
import { inTurn } from "./turns";

it("runs tasks in their order, each in a task of its own, without those that were removed", async () => {
  const done: string[] = [];
  let between = 0;
  await new Promise<void>((finish) => {
    inTurn(() => {
      done.push("a");
      setTimeout(() => (between = done.length));
    });
    const remove = inTurn(() => done.push("b"));
    inTurn(() => done.push("c"));
    inTurn(finish);
    remove();
  });
  expect(done).toEqual(["a", "c"]);
  expect(between).toBeGreaterThan(0);
});
