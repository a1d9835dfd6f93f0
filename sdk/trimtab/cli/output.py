"""The output of the commands: results on standard output, messages on standard error."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import typer
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from trimtab.errors import TrimtabError
from trimtab.terminal import reader_gone, visible, write
from trimtab.terminal_console import TerminalConsole

# The place of the console's address in an address of a page. The command line knows the address of gRPC alone.
CONSOLE = "CONSOLE"

Json: TypeAlias = Mapping[str, object] | Sequence[object]

out = TerminalConsole()
err = TerminalConsole(stderr=True)

# gRPC's words for an answer of a web server that does not speak HTTP/2.
WEB_SERVER = "http1.x server"

# What to do about an error, by its code. The messages of other codes already say it.
ADVICE = {
    "unauthenticated": "Log in again: trimtab login ADDRESS",
    "invalid_token": "Log in again: trimtab login ADDRESS",
    "token_expired": "Log in again: trimtab login ADDRESS",
    "revoked": "Log in again: trimtab login ADDRESS",
    "tenant_required": "Choose one: trimtab login ADDRESS --tenant NAME, or TRIMTAB_TENANT=NAME",
    "study_not_found": "To list the names: trimtab study list",
    "study_exists": "Choose another name, or continue that study with --load-if-exists",
    "component_not_found": "To list what agents offer: trimtab agent list",
}


class Commands(TyperGroup):
    """A command group that prints expected errors without a traceback and exits with code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        given = (*ctx._protected_args, *ctx.args)
        as_json = "--json" in given[: given.index("--")] if "--" in given else "--json" in given
        try:
            return super().invoke(ctx)
        except TrimtabError as error:
            if as_json:
                print_json({"error": {"code": error.code, "message": error.message, "data": dict(error.data)}})
            say_error(error)
            raise typer.Exit(1) from error
        except BrokenPipeError:
            reader_gone()
        except Exception as error:
            # Typer has a copy of Click's errors for wrong usage, which is no part of its interface.
            words = getattr(error, "format_message", None)
            if as_json and words is not None:
                print_json({"error": {"code": "invalid_usage", "message": words(), "data": {}}})
            raise


def say_error(error: TrimtabError) -> None:
    """Print the error and, if known, what to do next."""
    err.print(
        Text.assemble(("error: ", "bold red"), " ".join(error.message.split()), f" [{error.code}]"), soft_wrap=True
    )
    if WEB_SERVER in error.message:
        err.print(
            "A web server answers at this address, perhaps the console. Use the port of gRPC, 8471 by default;"
            " `trimtab-service up` prints it after `grpc=`.",
            markup=False,
            soft_wrap=True,
        )
    if error.code in ADVICE:
        err.print(ADVICE[error.code], markup=False, soft_wrap=True)
    if error.docs:
        err.print(f"Documentation: {CONSOLE}{error.docs}", markup=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a message on standard error."""
    err.print(text, markup=False, soft_wrap=True)


def echo(text: str, *, nl: bool = True) -> None:
    """Print a text for programs and pipes: without wrapping, and without styles."""
    write(text, end="\n" if nl else "")


def print_json(content: Json) -> None:
    """Print JSON for programs."""
    echo(to_json(content))


def to_json(content: Json) -> str:
    """Return indented JSON."""
    return json.dumps(content, indent=2, default=plain)


def print_json_line(content: Json) -> None:
    """Print one line of JSON."""
    echo(json.dumps(content, default=plain))


def table(*columns: str) -> Table:
    """Return an empty table with these columns."""
    return _Rows(*columns, box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)


class _Rows(Table):
    """A table whose columns are as wide as the text that the console prints."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row."""
        for cell in cells:
            if isinstance(cell, Text):
                cell.plain = visible(cell.plain)
        super().add_row(*cells, **options)


def shown(value: object) -> str:
    """Return a value as text for people."""
    match value:
        case bool():
            return "on" if value else "off"
        case float():
            return f"{value:.6g}"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M")
    return str(value)


def plain(value: object) -> object:
    """Return a value for files: times in ISO 8601, others unchanged."""
    return value.isoformat() if isinstance(value, datetime) else value
