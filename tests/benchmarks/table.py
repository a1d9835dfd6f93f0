"""The result of a benchmark, and the table that shows it."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

Result = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One figure and its target. `reached` is None if there is no target or no measurement."""

    name: str
    value: float
    unit: str
    target: str = ""
    reached: bool | None = None
    peers: Mapping[str, float] = field(default_factory=dict)
    note: str = ""


def result(rows: Iterable[Row], **raw: object) -> Result:
    """Return the result of a benchmark: its rows and all other measurements."""
    return {"rows": [asdict(row) for row in rows], **raw}


def show(title: str, found: Result, console: Console | None = None) -> None:
    """Prints the rows as a table."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in ("figure", "value", "beside", "target", "reached"):
        table.add_column(column, justify="right" if column == "value" else "left")
    notes: list[str] = []
    for row in found["rows"]:
        peers = "\n".join(f"{name} {number(value)}" for name, value in row.get("peers", {}).items())
        verdict = {True: "[green]yes[/]", False: "[red]NO[/]", None: ""}[row.get("reached")]
        table.add_row(row["name"], f"{number(row['value'])} {row['unit']}", peers, row.get("target", ""), verdict)
        if row.get("note") and row["note"] not in notes:
            notes.append(row["note"])
    console = console or Console(width=None if sys.stdout.isatty() else 140)
    console.print(table)
    for note in notes:
        console.print(f"  {note}", style="dim")


def number(value: float) -> str:
    """Three digits that matter."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main(title: str, run: Callable[[bool], Result]) -> None:
    """The command line of a benchmark that is run by itself."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller runs: a look, not a measurement")
    parser.add_argument("--json", action="store_true", help="print everything that was measured as JSON")
    arguments = parser.parse_args()
    found = run(arguments.quick)
    if arguments.json:
        print(json.dumps(found, indent=1))
    else:
        show(title, found)
