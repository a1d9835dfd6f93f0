"""`trimtab audit`: show the changes in the tenant."""

from datetime import datetime
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from trimtab.cli.connection import connect
from trimtab.cli.output import out, print_json_line, say, shown, table

EXAMPLES = (
    "Examples:\n\n`trimtab audit --target study/gcc --limit 20`\n\n`trimtab audit --actor ann --since 2026-05-01`\n\n"
    "`trimtab audit --all --json > audit.jsonl`"
)


def audit(
    actor: Annotated[str, typer.Option(help="Show only changes by this person, token or agent.")] = "",
    action: Annotated[
        str, typer.Option(help="Show only actions that start so, for example study. or trial.complete.")
    ] = "",
    target: Annotated[str, typer.Option(help="Show only targets that start so, for example study/gcc/trial/3.")] = "",
    since: Annotated[datetime | None, typer.Option(help="Show only changes from this time on.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Show only changes before this time.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries, newest first.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Show all entries.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each entry as a line of JSON, with values before and after.")
    ] = False,
) -> None:
    """Show who changed what in the tenant. For administrators."""
    with connect() as client:
        found = client.audit(actor=actor, action=action, target=target, since=since, until=until)
        entries = islice(found, None if everything else limit)
        if as_json:
            for entry in entries:
                print_json_line(vars(entry))
            return
        listed = table("time", "who", "by", "from", "action", "target")
        for entry in entries:
            who = (Text(entry.actor), Text(entry.credential), entry.address)
            listed.add_row(shown(entry.at), *who, entry.action, Text(entry.target))
    if not listed.rows:
        say("No changes match.")
        return
    out.print(listed)
