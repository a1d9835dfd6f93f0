"""The page of the threat model names tests that exist, and has a part for each kind of person and program."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/explanation/threat-model.md"
WHO = (
    "Person without a token",
    "Viewer",
    "Member",
    "Administrator of a tenant",
    "Operator",
    "Agent",
    "Local user of a submission host",
    "Job or trial",
    "Neighbour tenant",
    "Database role of the service",
)


@cache
def functions(path: Path) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def parts() -> dict[str, list[str]]:
    """Return the rows of each part of the page, by its title."""
    found: dict[str, list[str]] = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, text = part.partition("\n")
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        found[title] = [row for row in rows if not row.startswith(("| ---", "| attempt |", "| who |"))]
    return found


def test_each_row_names_tests_that_exist() -> None:
    faults = []
    for title in WHO:
        for row in parts()[title]:
            named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
            if not named:
                faults.append(f"{title}: no test in {row}")
            faults += [
                f"{title}: {path}::{name}"
                for path, name in named
                if not (ROOT / path).is_file() or name not in functions(ROOT / path)
            ]
    assert not faults, "\n".join(faults)


def test_everybody_has_a_part_with_rows() -> None:
    assert {title for title in WHO if not parts().get(title)} == set()


def test_the_page_is_found() -> None:
    for page in ("SECURITY.md", "docs/README.md"):
        assert "explanation/threat-model.md" in (ROOT / page).read_text(encoding="utf-8"), page
