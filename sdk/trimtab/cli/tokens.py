"""`trimtab token`: create, list and revoke API tokens."""

from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from trimtab.cli.connection import connect
from trimtab.cli.output import echo, out, print_json, say, shown, table

app = typer.Typer(no_args_is_help=True, help="Create, list and revoke API tokens for scripts.")

Scopes = Annotated[
    list[str] | None,
    typer.Option("--scope", help="read, tune, agent or admin. Can be repeated. [default: read and tune]"),
]


@app.command(
    epilog="Examples:\n\n`trimtab token create nightly --study gcc --days 30`\n\n"
    "`TRIMTAB_TOKEN=$(trimtab token create ci --scope read)`"
)
def create(
    name: Annotated[str, typer.Argument(help="A name that says what the token is for.")],
    scope: Scopes = None,
    study: Annotated[str | None, typer.Option(help="Limit the token to this study. [default: all studies]")] = None,
    days: Annotated[int, typer.Option(help="How long the token is valid, 1 to 366 days.")] = 90,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Create an API token and print it once: the service stores only its hash.

    The token has the rights of your role, limited by its scopes. Only the token goes to standard output.
    """
    with connect() as client:
        token, secret = client.create_token(name, scope or ["read", "tune"], study=study, days=days)
    if as_json:
        print_json({**vars(token), "secret": secret})
        return
    say(
        f"Token {token.name} ({', '.join(token.scopes)}), valid until {shown(token.expires_at)}. It is shown only once:"
    )
    echo(secret)


@app.command("list", epilog="Examples:\n\n`trimtab token list`\n\n`trimtab token list --everyone --json`")
def list_tokens(
    everyone: Annotated[
        bool, typer.Option("--everyone", help="List the tokens of all people in the tenant. For administrators.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the valid API tokens and when each was last used."""
    with connect() as client:
        tokens = client.list_tokens(everyone=everyone)
    if as_json:
        print_json([vars(token) for token in tokens])
        return
    if not tokens:
        say("There are no API tokens. To create one: trimtab token create NAME")
        return
    listed = table("token", "name", "owner", "scopes", "study", "expires", "last used", "owner signs in by")
    for token in tokens:
        listed.add_row(
            f"{token.hint}…",
            Text(token.name),
            Text(token.owner),
            ", ".join(token.scopes),
            Text(token.study or "all"),
            _date(token.expires_at),
            _date(token.last_used_at) or "never",
            _date(token.sign_in_by) or "no limit",
        )
    out.print(listed)


@app.command(epilog="Example:\n\n`trimtab token revoke trm_4fK2`")
def revoke(
    token: Annotated[
        str, typer.Argument(help="The token's id, or its first characters as `trimtab token list` shows them.")
    ],
) -> None:
    """Revoke an API token at once. Administrators may revoke tokens of other people."""
    with connect() as client:
        client.revoke_token(token.rstrip("…"))
    say(f"Token {token} is revoked.")


def _date(time: datetime | None) -> str:
    return "" if time is None else shown(time)
