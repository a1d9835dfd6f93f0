"""HTML for notebooks. Every text that comes from elsewhere is escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

# A notebook shows so many trials of a study.
MOST_TRIALS = 10


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table."""
    cells = "".join(f"<th>{escape(one)}</th>" for one in head)
    body = "".join("<tr>" + "".join(f"<td>{text(one)}</td>" for one in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def pairs(values: Mapping[str, object]) -> str:
    """Return a table of two columns without the empty values."""
    kept = {name: value for name, value in values.items() if value not in ("", None)}
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{text(value)}</td></tr>" for name, value in kept.items())
    return f"<table><tbody>{rows}</tbody></table>"


def text(value: object) -> str:
    """Return a value as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{escape(str(name))} = {text(one)}" for name, one in value.items())
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))
