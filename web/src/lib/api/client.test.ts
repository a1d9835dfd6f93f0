import { expect, it } from "vitest";
import { api, identify, identityFor, meaning } from "./client";

it("says with each write which study of the name is meant", () => {
  const forget = identify("a b", "first");
  expect(identityFor("DELETE", "/api/v1/studies/a%20b")).toBe("first");
  expect(identityFor("PUT", "/api/v1/studies/a%20b/budget")).toBe("first");
  expect(identityFor("GET", "/api/v1/studies/a%20b")).toBeUndefined();
  expect(identityFor("POST", "/api/v1/studies")).toBeUndefined();
  expect(identityFor("DELETE", "/api/v1/studies/other")).toBeUndefined();
  // The page shows the study that replaces it before it forgets the first one.
  identify("a b", "second");
  forget();
  expect(identityFor("DELETE", "/api/v1/studies/a%20b")).toBe("second");
});

it("says with a write to a study of a list which study is meant, also while a page shows another one of its name", async () => {
  const forget = identify("s", "shown");
  const seen: Request[] = [];
  const fetch = (request: Request) => {
    seen.push(request);
    return Promise.resolve(new Response(null, { status: 204 }));
  };
  const params = { path: { name: "s" } };
  const baseUrl = "http://localhost/";
  await api.DELETE("/api/v1/studies/{name}", { params, baseUrl, fetch, headers: meaning({ uid: "listed" }) });
  await api.DELETE("/api/v1/studies/{name}", { params, baseUrl, fetch });
  forget();
  expect(seen.map(({ headers }) => headers.get("X-Trimtab-Study-Uid"))).toEqual(["listed", "shown"]);
});
