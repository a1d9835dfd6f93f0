import { expect, it } from "vitest";
import { isSamePage, rowsQuery } from "./api";
import { ALL, orderOf } from "./tableQuery";

it("keeps rows while the study changes, and never shows them as those of another page", () => {
  const wanted = { order: orderOf("-number"), filter: ALL, offset: 0, size: 50 };
  const { queryKey } = rowsQuery("s", wanted, 7);
  const page = ["s", wanted.order, "", null, [], 0, 50];
  expect(isSamePage(queryKey, page)).toBe(true);
  expect(isSamePage(rowsQuery("s", wanted, 8).queryKey, page)).toBe(true);
  expect(isSamePage(rowsQuery("s", { ...wanted, offset: 50 }, 7).queryKey, page)).toBe(false);
  expect(isSamePage(rowsQuery("s", { ...wanted, filter: { ...ALL, where: ["x > 1"] } }, 7).queryKey, page)).toBe(false);
  expect(isSamePage(undefined, page)).toBe(false);
});
