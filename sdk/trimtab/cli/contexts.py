"""`trimtab study best` and `trimtab follow`: settings that depend on the context."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import trimtab
from trimtab.cli.completion import study_names
from trimtab.cli.connection import connect
from trimtab.cli.context_controller import (
    CONFIRMATIONS,
    INTERVAL_SECONDS,
    REFRESH_SECONDS,
    Follower,
    FollowError,
    context_of_command,
    settings_to_command,
)
from trimtab.cli.output import say, to_json
from trimtab.cli.results import print_contexts
from trimtab.context import ContextTable
from trimtab.errors import InvalidInput

BEST_EXAMPLES = (
    "Examples:\n\n`trimtab study best proxy`\n\n`trimtab study best proxy --context load=high --context hit=0.83`\n\n"
    "`trimtab study best proxy --format yaml --out proxy.yaml`"
)
FOLLOW_EXAMPLES = (
    "Examples:\n\n`trimtab follow proxy --context-command ./load.sh --apply-command ./apply.py`\n\n"
    "`trimtab follow proxy --context-command ./load.sh --apply-command ./apply.py --table proxy.json --interval 5`\n\n"
    "`trimtab follow proxy --context-command ./load.sh --apply-command ./apply.py --once`"
)

RETRY_SECONDS = 5.0

Name = Annotated[str, typer.Argument(help="The study's name.", autocompletion=study_names)]


class Form(StrEnum):
    """The form of a printed table."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def best(
    name: Name,
    context: Annotated[
        list[str] | None, typer.Option("--context", help="NAME=VALUE of a context variable; may be repeated.")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="JSON and YAML are for programs.")] = Form.TABLE,
    to: Annotated[Path | None, typer.Option("--out", "-o", help="Write to a file.", dir_okay=False)] = None,
) -> None:
    """Show the settings to use in each context of a study, or in one context, with the verdict on each.

    The settings are the default where no gain is proven.
    """
    with connect() as client:
        found = client.get_study(name).context_table()
    if not found.rows:
        raise InvalidInput.of("study", name, "a study with a context: see `trimtab study show` for others")
    if context:
        found = ContextTable(found.study, found.revision, (found.lookup(_given(context)),))
    if form is Form.TABLE and to is None:
        print_contexts(found)
        return
    text = to_json(found.to_json()) if form is Form.JSON else _yaml(found)
    if to is None:
        typer.echo(text)
    else:
        to.write_text(text + "\n")


def follow(
    name: Name,
    context_command: Annotated[
        str, typer.Option(help="Prints the present context: a JSON object, or lines such as load=high.")
    ],
    apply_command: Annotated[str, typer.Option(help="Gets the settings as JSON on standard input and applies them.")],
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between two readings.")] = INTERVAL_SECONDS,
    confirmations: Annotated[
        int, typer.Option(min=1, help="Readings in a row that have to ask for other settings.")
    ] = CONFIRMATIONS,
    refresh: Annotated[float, typer.Option(min=1, help="Seconds after which the table is read again.")] = (
        REFRESH_SECONDS
    ),
    table_file: Annotated[
        Path | None, typer.Option("--table", help="Keeps the last table for times without the service.", dir_okay=False)
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read and apply once, and end.")] = False,
) -> None:
    """Give a running system the settings that suit its present context, and change them when it changes.

    The commands run without a shell. While the service is away, the last table stays in use.
    """
    read, apply = context_of_command(context_command), settings_to_command(apply_command)
    # A controller that waits long for the service could not follow the context meanwhile.
    with trimtab.Client(retry_seconds=RETRY_SECONDS) as client:
        study: trimtab.Study | None = None

        def fetch() -> ContextTable:
            nonlocal study
            # Not before the loop: the service may be away while this command starts.
            study = study or client.get_study(name)
            return study.context_table()

        follower = Follower(fetch, read, apply, file=table_file, confirmations=confirmations, refresh=refresh)
        if once:
            try:
                row = follower.step()
            except FollowError as error:
                say(f"error: {error}")
                raise typer.Exit(1) from error
            if row is not None:
                print_contexts(ContextTable(name, 0, (row,)))
            return
        say(f"Following the context of study {name} every {interval:g} s. Ctrl-C ends it.")
        try:
            follower.run(interval, report=say)
        except KeyboardInterrupt:
            say("The settings stay as they are.")


def _given(texts: list[str]) -> dict[str, object]:
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise InvalidInput.of("context", text, "NAME=VALUE such as load=high")
        try:
            plain = json.loads(value)
        except ValueError:
            plain = value
        found[name] = plain if isinstance(plain, bool | int | float) else value
    return found


def _yaml(found: ContextTable) -> str:
    """Return the table as YAML, of which JSON values are a part: one line for each row."""
    lines = [f"study: {json.dumps(found.study)}", f"revision: {found.revision}", "rows:"]
    for row in found.rows:
        lines += [f"  - {json.dumps(row.to_json())}"]
    return "\n".join(lines)
