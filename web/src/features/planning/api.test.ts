import { expect, it } from "vitest";
import type { ListedStudy } from "@/lib/api/client";
import { earlierQuery, nextName } from "./api";

it("offers only earlier studies of the same component that have a result", () => {
  const listed = (name: string, component: string, best?: number | null): ListedStudy =>
    ({ name, component, finished_count: 3, objectives: best === undefined ? [] : [{ metric: "s", best }] }) as unknown as ListedStudy;
  const studies = [listed("good", "c", 1), listed("all-failed", "c", null), listed("new", "c"), listed("other", "", 1)];
  const names = (component: string) => earlierQuery(component).select?.({ studies, next_page_token: "", total_count: 4 }).map(({ name }) => name);
  expect(names("c")).toEqual(["good"]);
  expect(names("")).toEqual(["other"]);
});

it.each([
  ["flags", [], "flags-2"],
  ["flags-1", [], "flags-2"],
  ["flags-2", ["flags-1", "flags-2", "flags-3", "flags-4", "flags-40"], "flags-5"],
  ["gcc13", ["gcc13"], "gcc-14"],
  ["night-2026-11", [], "night-2026-12"],
  ["42", [], "42-2"],
])("after %s, where there are %j, comes %s", (name, taken, next) => {
  expect(nextName(name, taken)).toBe(next);
});
