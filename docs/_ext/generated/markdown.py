"""Markdown from values: cells and tables."""

import re
from collections.abc import Iterable, Sequence


def cell(text: object) -> str:
    """Return a text as the content of a cell: on one line, without characters that mean something in a table."""
    line = " ".join(str(text).split())
    # Code keeps its characters; elsewhere `<` would begin a tag.
    parts = re.split(r"(`[^`]*`)", line)
    shown = "".join(part if part.startswith("`") else part.replace("<", "&lt;").replace("*", r"\*") for part in parts)
    return shown.replace("|", r"\|")


def code(text: object) -> str:
    """Return a text as code; nothing for an empty one."""
    return f"`{text}`" if str(text) else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table. The cells are Markdown already if they are code, and are made safe otherwise."""
    lines = [columns, ["---"] * len(columns), *([cell(one) for one in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
