import { cleanup } from "@testing-library/react";
import { afterEach } from "vitest";

// jsdom has no media queries: nobody prefers anything.
window.matchMedia = (query) =>
  ({ matches: false, media: query, addEventListener: () => undefined, removeEventListener: () => undefined }) as unknown as MediaQueryList;

afterEach(cleanup);
