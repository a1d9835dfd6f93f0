import { expect, it } from "vitest";
import type { ListedStudy } from "@/lib/api/client";
import { earlierQuery } from "./api";

it("offers only earlier studies of the same component that have a result", () => {
  const listed = (name: string, component: string, best?: number | null): ListedStudy =>
    ({ name, component, finished_count: 3, objectives: best === undefined ? [] : [{ metric: "s", best }] }) as unknown as ListedStudy;
  const studies = [listed("good", "c", 1), listed("all-failed", "c", null), listed("new", "c"), listed("other", "", 1)];
  const names = (component: string) => earlierQuery(component).select?.({ studies, next_page_token: "", total_count: 4 }).map(({ name }) => name);
  expect(names("c")).toEqual(["good"]);
  expect(names("")).toEqual(["other"]);
});
