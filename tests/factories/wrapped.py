"""The console in a language of its own: each text of its catalogue stands in brackets; what stands outside is none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from playwright.sync_api import BrowserContext, Error, Page, Route

# Before the catalogue's own module: its JSON.parse gives the texts, each a list of parts, with brackets around them.
WRAPPED = """const JSON = { parse: (text) => Object.fromEntries(
  Object.entries(globalThis.JSON.parse(text)).map(([id, parts]) => [id, ["⟦", ...[parts].flat(1), "⟧"]])) };
"""
# Texts that need no wrapping although the service did not send them: names, a role, units, digests, numbers.
NO_TEXT = re.compile(r"Trimtab|SVG|SHA-256|Ctrl|K|operator|ns|µs|ms|s|min|h|B|[KMG]iB|[0-9a-f]{12}|[\d.]+(e-?\d+)?")
# What the browser writes by itself, in its own words for the language: dates and lists.
BY_BROWSER = re.compile(r"Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec|UTC|GMT|and|or")
EDGES = " .:,()"
BETWEEN = re.compile(r"[^\w.-]+")

OUTSIDE = """() => {
  const found = [];
  const outside = (text) => text.replace(/⟦[^⟦⟧]*(⟦[^⟦⟧]*(⟦[^⟦⟧]*⟧[^⟦⟧]*)*⟧[^⟦⟧]*)*⟧/g, " ").trim();
  found.push(["title", outside(document.title)]);
  let depth = 0;
  const look = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      let own = "";
      for (const letter of node.data) {
        if (letter === "⟦") depth += 1;
        else if (letter === "⟧") depth -= 1;
        else if (depth === 0) own += letter;
      }
      if (own.trim() !== "") found.push([node.parentElement.tagName.toLowerCase(), own.trim()]);
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || /^(SCRIPT|NOSCRIPT|STYLE|CODE|PRE|TEXTAREA)$/.test(node.tagName)) return;
    if (node.classList.contains("cm-editor")) return;  // a file that is written there
    for (const name of ["aria-label", "title", "placeholder", "alt", "data-label"]) {
      const value = node.getAttribute(name);
      if (value) found.push([`${node.tagName.toLowerCase()} ${name}`, outside(value)]);
    }
    node.childNodes.forEach(look);
  };
  look(document.body);
  return found.filter(([, text]) => /\\p{L}/u.test(text));
}"""


def wrap_texts(context: BrowserContext) -> list[object]:
    """Make the pages of a context show each text of the catalogue in brackets. Return the list of recorded answers."""
    reported: list[object] = []

    def catalogue(route: Route) -> None:
        answer = route.fetch()
        assert "JSON.parse(" in answer.text(), "a catalogue is made in another way than it was"
        route.fulfill(response=answer, body=WRAPPED + answer.text())

    def noted(route: Route) -> None:
        # A page that is left gives up what it has asked for.
        with suppress(Error):
            answer = route.fetch()
            if "json" in answer.headers.get("content-type", ""):
                reported.append(answer.json())
            route.fulfill(response=answer)

    context.route(re.compile(r"/assets/en-[^/]*\.js$"), catalogue)
    # Not the streams, which do not end.
    context.route(re.compile(r"/api/v1/(?!session|events|.*/(events|log)\b)"), noted)
    return reported


def names_and_values(reported: object) -> set[str]:
    """Return every name and value of a report, each as a whole."""
    return {text.strip(EDGES) for text in _texts(reported)}


def unwrapped(page: Page) -> list[tuple[str, str]]:
    """Return the places of texts outside of brackets on the page, and the texts."""
    return [(where, text) for where, text in page.evaluate(OUTSIDE)]


def foreign(text: str, known: set[str]) -> list[str]:
    """Return the words of a text that the service has not sent and that are no units or numbers."""
    if text.strip(EDGES) in known:
        return []
    # The console writes a minus as such, no hyphen.
    words = (word.strip(".-") for word in BETWEEN.split(text.replace("\u2212", "-")))
    own = (NO_TEXT, BY_BROWSER)
    return [word for word in words if word and word not in known and not any(one.fullmatch(word) for one in own)]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, bool):
        yield str(value).lower()
