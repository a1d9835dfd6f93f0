"""The root of the command line."""

import sys
from pathlib import Path
from typing import Annotated

import typer

import trimtab
from trimtab import login as logins
from trimtab.cli import agents, measure_grid, studies, tune
from trimtab.cli.output import Commands, say

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Trimtab finds settings that make a system measurably better.\n\n"
    "Begin with `trimtab login HOST:PORT --token-file FILE`, or set TRIMTAB_URL and TRIMTAB_TOKEN.",
)
app.add_typer(studies.app, name="study")
app.add_typer(agents.app, name="agent")
app.command("tune", epilog=tune.EXAMPLES)(tune.tune)
app.command("measure-grid", epilog=measure_grid.EXAMPLES)(measure_grid.measure_grid)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"trimtab {trimtab.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Holds the options that stand before any command; its help is the app's."""


@app.command(
    epilog="Examples:\n\n`trimtab login 127.0.0.1:8471 --token-file data/admin-token`\n\n"
    "`trimtab login grpcs://tuning.example.org:443` (asks for the token)"
)
def login(
    address: Annotated[
        str | None,
        typer.Argument(help="HOST:PORT of the gRPC port, grpcs://HOST:PORT for TLS. [default: 127.0.0.1:8471]"),
    ] = None,
    token: Annotated[
        str | None, typer.Option(help="The token. Others on this machine may see it: better use --token-file.")
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="A file with the token; - is standard input.")] = None,
) -> None:
    """Check a token and keep it for this user.

    Address and token are stored in a file that only you can read. Other commands, and `trimtab.Client()`, use them
    unless TRIMTAB_URL and TRIMTAB_TOKEN are set.
    """
    if token is not None and token_file is not None:
        raise typer.BadParameter("give --token or --token-file, not both")
    if token_file is not None:
        try:
            token = sys.stdin.read() if str(token_file) == "-" else token_file.read_text(errors="replace")
        except OSError as error:
            raise typer.BadParameter(f"{token_file} cannot be read: {error.strerror}") from error
    if token is None:
        if not sys.stdin.isatty():
            raise typer.BadParameter("give --token-file FILE, for example the service's data/admin-token")
        token = typer.prompt("Token", hide_input=True)
    wanted = logins.Login(logins.Address.parse(address or logins.DEFAULT_ADDRESS), logins.clean(token))
    with trimtab.Client(str(wanted.address), wanted.token, retry_seconds=5.0) as client:
        client.list_agents()  # any call does: it is refused without a good token
    path = logins.store(wanted)
    say(f"Logged in to {wanted.address}; stored in {path}.")
