"""The environment variables of the service with their defaults, from the modules that read them."""

import ast
from collections.abc import Iterator
from pathlib import Path

from docs._ext.generated.markdown import code
from docs._ext.generated.markdown import table as markdown_table
from docs._ext.pages import ROOT

FOLDER = ROOT / "service" / "config" / "settings"
TITLES = {
    "base.py": "All processes",
    "hosted.py": "Hosted mode",
    "auth.py": "Sign-in",
    "limits.py": "Limits",
    "notices.py": "Notifications",
    "celery.py": "Tasks",
    "rest.py": "REST",
}
# Variables that are read within a larger statement, whose comment says something else.
MEANINGS = {
    "TRIMTAB_LOG_FORMAT": "Form of log lines: `line` for people, `json` for programs. Hosted mode has `json`.",
    "TRIMTAB_LOG_LEVEL": "Lowest level of the log lines that are written: DEBUG, INFO, WARNING or ERROR.",
    "TRIMTAB_DATABASE_POOL": "Number of connections to the database that the threads of a process share. 0: each "
    "thread has its own. The web process has 8.",
    "DATABASE_URL": "Address of PostgreSQL, with the role that the service connects with.",
    "TRIMTAB_SECRET_KEY": "A long random text that signs sign-ins, the same for every process.",
    "CELERY_BROKER_URL": "Address of the broker, Redis or RabbitMQ.",
}


def table() -> str:
    """Return a table for each module of settings that reads variables."""
    parts = []
    for name, title in TITLES.items():
        rows = list(_variables(FOLDER / name))
        if rows:
            parts.append(f"## {title}\n\n" + markdown_table(("variable", "default", "meaning"), rows))
    return "\n".join(parts)


def _variables(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield name, default and the comment above each variable. Variables on lines without one share the comment.

    Raises ValueError for a variable that nothing explains.
    """
    lines = path.read_text().splitlines()
    seen = set()
    meaning = ""
    for statement in ast.parse(path.read_text()).body:
        found = [one for node in ast.walk(statement) if (one := _read(node)) and one[0] not in seen]
        meaning = (_comment(lines, statement.lineno - 1) or meaning) if found else ""
        for name, default in found:
            if not MEANINGS.get(name, meaning):
                raise ValueError(f"{path}:{statement.lineno}: no comment explains {name}. Write one above.")
            seen.add(name)
            yield code(name), default, MEANINGS.get(name, meaning)


def _read(node: ast.AST) -> tuple[str, str] | None:
    """Return the variable's name and default if the node reads one from the environment."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
            args=[ast.Constant(value=str(name)), *rest],
        ):
            return name, _default(rest[0]) if rest else "empty"
        case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
            return name, "required"
    return None


def _default(expression: ast.expr) -> str:
    match expression:
        case ast.Constant(value=value):
            return code(value) or "empty"
        case ast.BinOp(left=ast.BinOp(left=ast.Name(id="ROOT"))):
            folders = [node.value for node in ast.walk(expression) if isinstance(node, ast.Constant)]
            return f"{code('/'.join(map(str, reversed(folders))))} of the checkout"
        case _:
            return code(ast.unparse(expression))


def _comment(lines: list[str], index: int) -> str:
    found: list[str] = []
    while index > 0 and lines[index - 1].startswith("#"):
        index -= 1
        found.insert(0, lines[index].lstrip("# "))
    return " ".join(found)
