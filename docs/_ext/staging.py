"""The sources of the site: a copy of all pages in which links fit the site and the generated parts are filled in.

Where a page has `<!-- picture: NAME: TEXT -->`, the site shows the console's page NAME as `make screens` has drawn it,
in the scheme of the reader. A site that is built without these pictures has nothing there.

Links between Markdown files are relative paths, so that they work on a code host. Here a link to a file that is a page
of the site becomes a link to that page, and a link to another file becomes the file's path in the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from docs._ext.generated import GENERATORS
from docs._ext.pages import ROOT, SCREENS, site_pages

# These pages list other pages; the site's navigation follows them. The key is the page, the value tells whether each
# section of it is a section of the navigation.
LISTS = {"docs/README.md": True, "docs/decisions/README.md": False, "agents/workloads/README.md": False}

# The links of this section lead to pages that others list.
NOT_LISTED = "Begin here"

GENERATED = re.compile(r"^<!-- generated: (\S+) -->$", re.MULTILINE)
PICTURE = re.compile(r"^<!-- picture: ([a-z-]+): (.+) -->$", re.MULTILINE)
CODE = re.compile(r"^( {0,3})(```|~~~)[\s\S]*?^\1\2|`[^`\n]+`|^(?: {4}|\t)(?!\s*[-*\d]).*$", re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
ELSEWHERE = re.compile(r"[a-z]+:")


class BrokenLink(ValueError):
    """A link to a file that does not exist, or a part that no generator makes."""


def stage(target: Path) -> None:
    """Write the sources of the site into `target`. A file that has not changed keeps its time.

    Raises BrokenLink.
    """
    pages = site_pages()
    wanted = set()
    for path, name in pages.items():
        page = Page(path, pages)
        content = page.content()
        for file in page.files:
            _write(target / file, (ROOT / file).read_bytes())
            wanted.add(file)
        _write(target / f"{name}.md", content.encode())
        wanted.add(f"{name}.md")
    for old in list(target.rglob("*")):
        if old.is_file() and old.relative_to(target).as_posix() not in wanted:
            old.unlink()


class Page:
    """One Markdown file of the repository. `files` are the pictures that it shows, by their path in the repository."""

    def __init__(self, path: str, pages: Mapping[str, str]) -> None:
        self.path = path
        self.files: list[str] = []
        self._pages = pages

    def content(self) -> str:
        """Return the page as the site needs it."""
        text = self._with_links((ROOT / self.path).read_text(encoding="utf-8"))
        text = GENERATED.sub(self._generate, text)
        text = PICTURE.sub(self._show, text)
        return text + self._navigation() if self.path in LISTS else text

    def linked(self) -> dict[str, list[str]]:
        """Return the pages that this page links to, without duplicates, by the section's title."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        sections: dict[str, list[str]] = {}
        seen = set()
        title = ""
        for line in text.splitlines():
            if line.startswith(("## ", "### ")):
                title = line.lstrip("#").strip()
            if title == NOT_LISTED:
                continue
            for match in LINK.finditer(line):
                path = self._resolve(match[3].partition("#")[0])
                if path in self._pages and path not in seen and path != self.path:
                    seen.add(path)
                    sections.setdefault(title, []).append(path)
        return sections

    def _navigation(self) -> str:
        here = Path(self._pages[self.path]).parent
        parts = []
        for title, paths in self.linked().items():
            names = [os.path.relpath(self._pages[path], here) for path in paths]
            caption = [f":caption: {title}"] if LISTS[self.path] and title else []
            parts.append("\n".join(["```{toctree}", ":hidden:", *caption, "", *names, "```"]))
        return "\n" + "\n\n".join(parts) + "\n"

    def _with_links(self, text: str) -> str:
        visible = CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
        parts, end = [], 0
        for match in LINK.finditer(visible):
            parts += [text[end : match.start()], self._link(match[1], text[match.start(2) : match.end(2)], match[3])]
            end = match.end()
        return "".join([*parts, text[end:]])

    def _link(self, picture: str, label: str, target: str) -> str:
        if ELSEWHERE.match(target) or target.startswith("#"):
            return f"{picture}[{label}]({target})"
        file, _, anchor = target.partition("#")
        path = self._resolve(file)
        here = Path(self._pages[self.path]).parent
        if picture:
            self.files.append(path)
            return f"![{label}]({os.path.relpath(path, here)})"
        if path in self._pages:
            return f"[{label}]({os.path.relpath(self._pages[path], here)}.md{'#' + anchor if anchor else ''})"
        plain = label.strip("`").rstrip("/")
        return f"`{path}`" if path.endswith(plain) else f"{label} (`{path}`)"

    def _resolve(self, file: str) -> str:
        """Return the path in the repository; a folder stands for its README.md where that is a page."""
        if ELSEWHERE.match(file) or not file:
            return file or self.path
        path = os.path.normpath(Path(self.path).parent / file)
        if not (ROOT / path).exists():
            raise BrokenLink(
                f"{self.path}: the link to {file!r} leads to {path!r}, which does not exist. Correct the path."
            )
        readme = f"{path}/README.md".removeprefix("./")
        return readme if readme in self._pages else path

    def _generate(self, match: re.Match[str]) -> str:
        if match[1] not in GENERATORS:
            raise BrokenLink(f"{self.path}: no generator is named {match[1]!r}. Use one of {', '.join(GENERATORS)}.")
        return GENERATORS[match[1]]()

    def _show(self, match: re.Match[str]) -> str:
        """Return the pictures of a page of the console, of which Furo shows the one for the reader's scheme."""
        shown = []
        for scheme in ("light", "dark"):
            path = f"{SCREENS}/{match[1]}-wide-{scheme}.png"
            if not (ROOT / path).is_file():
                return ""
            self.files.append(path)
            address = os.path.relpath(path, Path(self._pages[self.path]).parent)
            shown.append(f":::{{image}} {address}\n:alt: {match[2]}\n:class: only-{scheme}\n:::")
        return "\n\n".join(shown)


def _write(path: Path, content: bytes) -> None:
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
