"""The help texts of all commands of the three programs."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The same text on every machine: the width, no colours, and no path of the one who builds.
WIDTH = 100


def trimtab() -> str:
    """Return a section for each command of `trimtab`."""
    from trimtab.cli.main import app

    return _typer(app, "trimtab")


def service() -> str:
    """Return a section for each command of `trimtab-service`."""
    from service.main import app

    return _typer(app, "trimtab-service")


def agent() -> str:
    """Return a section for each command of `trimtab-agent`."""
    from trimtab_agent.main import parser
    from trimtab_agent.matching import wrap

    os.environ["COLUMNS"] = str(WIDTH)
    top = parser()
    [commands] = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    sections = [("trimtab-agent", top.format_help())]
    for name, command in commands.choices.items():
        text = wrap.parser().format_help() if name == "wrap" else command.format_help()
        sections.append((f"trimtab-agent {name}", text))
    return "\n".join(_section(name, text) for name, text in sections)


def _typer(app: Any, program: str) -> str:
    import typer.main

    return "\n".join(_section(name, text) for name, text in _commands(typer.main.get_command(app), program))


def _commands(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the name and the help text of a command and of the commands below it."""
    context = command.make_context(name.rpartition(" ")[2], [], parent=parent, resilient_parsing=True)
    context.terminal_width = context.max_content_width = WIDTH
    # Without markup a program prints plain text; with it, boxes that a page should not have.
    command.rich_markup_mode = None
    yield name, command.get_help(context)
    for word, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield from _commands(below, f"{name} {word}", context)


def _section(name: str, text: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text).replace(str(Path.home()), "~").strip("\n")
    return f"### {name}\n\n```text\n{plain}\n```\n"
