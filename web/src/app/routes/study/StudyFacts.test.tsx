// @vitest-environment jsdom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { expect, it, vi } from "vitest";
import { Description } from "./StudyFacts";

const TEXT = "# Why\n\n**Fast** [code](https://example.org) [bad](javascript:alert(1))\n\n<script>1</script> <b>x</b> ![i](https://example.org/i.png)";

it("renders the Markdown of a description without raw HTML, scripts and images", async () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  act(() => {
    root.render(<Description text={TEXT} />);
  });
  await vi.waitFor(async () => {
    await act(async () => Promise.resolve());
    expect(place.querySelector("h2")?.textContent).toBe("Why");
  }, 30_000);
  expect(place.querySelector("strong")?.textContent).toBe("Fast");
  expect([...place.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual(["https://example.org", ""]);
  expect(place.querySelectorAll("script, b, img")).toHaveLength(0);
  expect(place.querySelector("details")?.open).toBe(true);
  act(() => {
    root.unmount();
  });
});
