// @vitest-environment jsdom
import { afterEach, expect, it } from "vitest";
import { keepDraft, keptDraft } from "./useDraft";

afterEach(() => sessionStorage.clear());

it("keeps one draft for each source until it is removed", () => {
  keepDraft("component:web", { text: "a: 1\n", tags: "x, y" });
  expect(keptDraft("component:web")).toEqual({ text: "a: 1\n", tags: "x, y" });
  expect(keptDraft("clone:web")).toBeNull();
  keepDraft("component:web", null);
  expect(keptDraft("component:web")).toBeNull();
});

it.each(["{", "[]", '{"text": 1}', "null"])("ignores %s in the storage", (stored) => {
  sessionStorage.setItem("trimtab-draft:a", stored);
  expect(keptDraft("a")).toBeNull();
});
