"""`trimtab study best` and `trimtab follow`: settings that depend on the context."""

import json
import signal
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
    revert_of_command,
    settings_to_command,
)
from trimtab.cli.follow_guards import read_guards
from trimtab.cli.follow_lease import Lease, left
from trimtab.cli.follow_lease import run as run_revert
from trimtab.cli.output import echo, say, to_json
from trimtab.cli.results import print_best, print_contexts
from trimtab.cli.settings import Form, Format, OfTrial, To, show
from trimtab.context import ContextTable
from trimtab.errors import InvalidInput

BEST_EXAMPLES = (
    "Examples:\n\n`trimtab study best proxy`\n\n`trimtab study best proxy --context load=high --context hit=0.83`\n\n"
    "`trimtab study best proxy --format yaml --out proxy.yaml`\n\n"
    "`trimtab study best redis-1 --format template --out redis.conf`"
)
FOLLOW_EXAMPLES = (
    "Examples:\n\n`trimtab follow proxy --context-command ./load.sh --apply-command ./apply.py`\n\n"
    "`trimtab follow proxy --context-command ./load.sh --apply-command ./apply.py --table proxy.json --interval 5`\n\n"
    "`trimtab follow proxy --context-command ./load.sh --apply-command ./apply.py --once`\n\n"
    "`trimtab follow proxy --context-command ./load.sh --apply-command ./apply.py --revert-command ./revert.sh "
    "--guards guards.json --lease /run/proxy.lease`"
)

RETRY_SECONDS = 5.0

Name = Annotated[str, typer.Argument(help="The study's name.", autocompletion=study_names)]


def best(
    name: Name,
    context: Annotated[
        list[str] | None, typer.Option("--context", help="NAME=VALUE of a context variable; may be repeated.")
    ] = None,
    form: Form = None,
    trial: OfTrial = None,
    to: To = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show the settings to use, with the verdict on them; with a context, those of each context or of one.

    With a context, the settings are the default where no gain is proven. `--format` prints the settings ready to use;
    `json` and `yaml` of a study with a context print its whole table.
    """
    if as_json:
        if form not in (None, Format.JSON):
            raise InvalidInput.of("--json", "true", f"either --json or --format {form}")
        form = Format.JSON
    if form is None and to is not None:
        form = Format.YAML
    with connect() as client:
        study = client.get_study(name)
        if not study.spec.context or trial is not None:
            if form is None:
                print_best(study)
                return
            show(study, form, trial=trial, context=given_context(context or []) or None, to=to)
            return
        found = study.context_table()
        if context:
            found = ContextTable(found.study, found.revision, (found.lookup(given_context(context)),))
        if form is None:
            print_contexts(found)
            return
        if form not in (Format.JSON, Format.YAML):
            show(study, form, trial=None, context=given_context(context or []) or None, to=to)
            return
    text = to_json(found.to_json()) if form is Format.JSON else _yaml(found)
    if to is None:
        echo(text)
        return
    try:
        to.write_text(text + "\n")
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{to} cannot be written: {error.strerror}.") from error


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
    revert_command: Annotated[
        str | None, typer.Option(help="Puts the earlier settings back, without input; may run at any time and twice.")
    ] = None,
    guards_file: Annotated[
        Path | None, typer.Option("--guards", help="Limits whose breach takes settings back (JSON).", dir_okay=False)
    ] = None,
    lease_file: Annotated[
        Path | None,
        typer.Option(
            "--lease", help="Exists while settings are in force; a next start takes them back.", dir_okay=False
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Read and apply once, and end.")] = False,
) -> None:
    """Give a running system the settings that suit its present context, and change them when it changes.

    The commands run without a shell. While the service is away, the last table stays in use. Settings that cannot be
    applied, or that break a guard, are taken back. With a lease file they are also taken back when this process dies.
    """
    read, apply = context_of_command(context_command), settings_to_command(apply_command)
    words, revert = (None, None) if revert_command is None else revert_of_command(revert_command)
    if words is None and (guards_file is not None or lease_file is not None):
        raise InvalidInput.of("revert_command", None, "a command: --guards and --lease need a way back")
    if once and (guards_file is not None or lease_file is not None):
        raise InvalidInput.of("once", True, "false with --guards or --lease: nobody would watch the settings later")
    if lease_file is not None:
        _take_back_left(lease_file)
    guards = None if guards_file is None else read_guards(guards_file)
    lease = None if lease_file is None or words is None else Lease(lease_file.absolute(), words)
    # A controller that waits long for the service could not follow the context meanwhile.
    with trimtab.Client(retry_seconds=RETRY_SECONDS) as client:
        study: trimtab.Study | None = None

        def fetch() -> ContextTable:
            nonlocal study
            # Not before the loop: the service may be away while this command starts.
            study = study or client.get_study(name)
            return study.context_table()

        follower = Follower(
            fetch,
            read,
            apply,
            revert=revert,
            guards=guards,
            lease=lease,
            file=table_file,
            confirmations=confirmations,
            refresh=refresh,
        )
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
        # SIGTERM ends a service of systemd, and is the same as Ctrl-C.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            follower.run(interval, report=say)
        except KeyboardInterrupt:
            try:
                reverted = follower.end()
            except FollowError as error:
                # The watchdog tries again when this process has ended.
                say(f"error: {error}")
                raise typer.Exit(1) from error
            say("The earlier settings are in force." if reverted else "The settings stay as they are.")
            if lease is not None:
                lease.close()


def _take_back_left(lease_file: Path) -> None:
    """Take back what an earlier process has left in force."""
    try:
        words = left(lease_file)
    except ValueError as error:
        raise InvalidInput.of("lease", str(lease_file), str(error)) from error
    if not words:
        return
    if why := run_revert(words):
        say(f"error: the settings of an earlier process could not be taken back: {why}")
        raise typer.Exit(1)
    lease_file.unlink(missing_ok=True)
    say("The settings of an earlier process were taken back.")


def given_context(texts: list[str]) -> dict[str, object]:
    """Return the values of NAME=VALUE by name."""
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
