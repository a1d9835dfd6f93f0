import { lazy, Suspense } from "react";
import type { Options } from "react-markdown";
import { part } from "@/lib/chunks";

// The parser is loaded with the first text.
const Parsed = lazy(() => part(() => import("react-markdown")));
/* eslint-disable lingui/no-unlocalized-strings -- names of elements and styles */
const LIST = { listStyle: "revert", paddingLeft: "1.5em" };
const BODY = { display: "grid", gap: "0.6rem", maxWidth: "60rem", overflowWrap: "anywhere" } as const;
const OPTIONS: Options = {
  // Images load from other sites.
  disallowedElements: ["img"],
  components: {
    // The heading of the page is above them.
    h1: "h2",
    h2: "h3",
    h3: "h4",
    h4: "h5",
    h5: "h6",
    ul: ({ children }) => <ul style={LIST}>{children}</ul>,
    ol: ({ children, start }) => (
      <ol style={LIST} start={start}>
        {children}
      </ol>
    ),
    a: ({ children, href }) => (
      <a href={href} target="_blank" rel="noreferrer nofollow ugc">
        {children}
      </a>
    ),
  },
};
/* eslint-enable lingui/no-unlocalized-strings */

/** Show Markdown that people have written. Raw HTML appears as text, scripts in links are removed, and images are left out. */
export function Markdown({ text }: { text: string }) {
  return (
    <div style={BODY}>
      <Suspense fallback={text}>
        <Parsed {...OPTIONS}>{text}</Parsed>
      </Suspense>
    </div>
  );
}
