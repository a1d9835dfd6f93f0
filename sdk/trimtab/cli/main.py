"""The entry point of the command line."""

import os
from typing import Annotated

import typer

import trimtab
from trimtab.cli import (
    access,
    agents,
    audit,
    best,
    contexts,
    imports,
    live,
    match,
    measure_grid,
    studies,
    tokens,
    trials,
    tune,
    tune_sbatch,
    vizier,
)
from trimtab.cli.documentation import PAGE, add_pages
from trimtab.cli.output import Commands, echo

# gRPC's log lines would mix with the output of commands. Errors are still reported.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Trimtab finds settings that make a system measurably better.\n\n"
    "Start with `trimtab login HOST:PORT`, or set TRIMTAB_URL and TRIMTAB_TOKEN. Connections to other machines are\n"
    "encrypted. TRIMTAB_TLS_CA names the PEM file of your own certificate authority; an address grpc://HOST:PORT\n"
    "switches encryption off.",
    epilog=f"Documentation: `{PAGE}`, where CONSOLE is the address of the console, such as `http://127.0.0.1:8470`",
)
studies.app.command("best", epilog=contexts.BEST_EXAMPLES)(contexts.best)
app.add_typer(studies.app, name="study")
app.add_typer(trials.app, name="trial")
app.add_typer(trials.app, name="trials", hidden=True)
app.add_typer(agents.app, name="agent")
app.add_typer(agents.app, name="agents", hidden=True)
app.add_typer(live.app, name="live")
app.add_typer(match.app, name="match")
app.add_typer(imports.app, name="import")
app.add_typer(tokens.app, name="token")
app.add_typer(tokens.app, name="tokens", hidden=True)
app.command("tune", epilog=tune.EXAMPLES)(tune.tune)
app.command("tune-sbatch", epilog=tune_sbatch.EXAMPLES)(tune_sbatch.tune_sbatch)
app.command("best", epilog=best.EXAMPLES)(best.best)
app.command("follow", epilog=contexts.FOLLOW_EXAMPLES)(contexts.follow)
app.command("measure-grid", epilog=measure_grid.EXAMPLES)(measure_grid.measure_grid)
app.command("vizier", epilog=vizier.EXAMPLES)(vizier.vizier)
app.command("login", epilog=access.LOGIN_EXAMPLES)(access.login)
app.command("logout", epilog="Example:\n\n`trimtab logout`")(access.logout)
app.command("whoami", epilog="Example:\n\n`trimtab whoami --json`")(access.whoami)
app.command("revoke", epilog=access.REVOKE_EXAMPLES)(access.revoke)
app.command("audit", epilog=audit.EXAMPLES)(audit.audit)
add_pages(app, "trimtab")


def _version(wanted: bool) -> None:
    if wanted:
        echo(f"trimtab {trimtab.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Define the options before any command. The help text is the app's."""
