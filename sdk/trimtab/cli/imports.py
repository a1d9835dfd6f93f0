"""`trimtab import`: the studies of other libraries as studies of the service."""

from dataclasses import asdict
from typing import Annotated

import typer

from trimtab.cli.connection import connect
from trimtab.cli.output import print_json, say
from trimtab.errors import InvalidInput
from trimtab.terminal import write

OPTUNA_EXAMPLES = (
    "Examples:\n\n"
    "`trimtab import optuna sqlite:///study.db`\n\n"
    "`trimtab import optuna postgresql+psycopg://optuna@db/optuna --study flags --study caches`\n\n"
    "`trimtab import optuna sqlite:///study.db --prefix old- --keep-active`"
)

app = typer.Typer(no_args_is_help=True, help="Import studies of other libraries.\n\n" + OPTUNA_EXAMPLES)


@app.callback()
def group() -> None:
    """Keep `optuna` a command of its own, because there will be others."""


@app.command("optuna", epilog=OPTUNA_EXAMPLES)
def import_optuna(
    storage: Annotated[str, typer.Argument(metavar="STORAGE_URL", help="The storage, as Optuna takes it.")],
    study: Annotated[list[str] | None, typer.Option(help="Only this study. Repeat it for several.")] = None,
    prefix: Annotated[str, typer.Option(help="A text before the names of the imported studies.")] = "",
    keep_active: Annotated[
        bool, typer.Option("--keep-active", help="Leave the studies ACTIVE, so that they can be continued.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Import the studies of an Optuna storage with their ended trials.

    Trials keep parameters, values, states, constraints, intermediate values and user attributes. Numbers among their
    user attributes also become metrics. The command names what it could not map. A second import adds nothing twice.
    The storage is only read. If a study cannot be imported, the others are, and the command ends with 1.
    """
    try:
        from trimtab.integrations.optuna.storage import import_storage
    except ImportError as error:
        raise InvalidInput("optuna_missing", 'This command needs Optuna 5: pip install "optuna>=5"') from error
    with connect() as client:
        imported = []
        for one in import_storage(client, storage, study or (), prefix=prefix, keep_active=keep_active):
            imported.append(one)
            if as_json:
                continue
            if one.error:
                write(f"{one.optuna_name}: not imported: {one.error}", error=True)
                continue
            states = ", ".join(f"{count} {state}" for state, count in sorted(one.trials.items())) or "no trials"
            say(f"{one.optuna_name}: study {one.study or '(none)'} has {states}; {one.added} are new.")
            for remark in one.remarks:
                say(f"  not mapped: {remark}")
        if as_json:
            print_json([asdict(one) for one in imported])
        elif not imported:
            say("The storage has no studies.")
    if any(one.error for one in imported):
        raise typer.Exit(1)
