"""The output of the commands: results on standard output, messages on standard error."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from trimtab.errors import TrimtabError

# The place of the console's address in an address of a page. The command line knows the address of gRPC alone.
CONSOLE = "CONSOLE"

Json: TypeAlias = Mapping[str, object] | Sequence[object]

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

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
        try:
            return super().invoke(ctx)
        except TrimtabError as error:
            say_error(error)
            raise typer.Exit(1) from error
        except BrokenPipeError:  # the reader, for example `head`, has closed the pipe
            raise typer.Exit(1) from None


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


def print_json(content: Json) -> None:
    """Print JSON for programs."""
    typer.echo(to_json(content))


def to_json(content: Json) -> str:
    """Return indented JSON."""
    return json.dumps(content, indent=2, default=plain)


def print_json_line(content: Json) -> None:
    """Print one line of JSON."""
    typer.echo(json.dumps(content, default=plain))


def table(*columns: str) -> Table:
    """Return an empty table with these columns."""
    return Table(*columns, box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)


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
