"""The arguments of `trimtab-service replay`. The implementation is imported only when the command runs."""

import csv
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from service.command_errors import CommandError
from trimtab_components.terminal import write


def replay(
    subject: Annotated[
        str,
        typer.Argument(help="A table of measurements (CSV, Parquet) or the name of a simulator; `list` shows those."),
    ],
    parameters: Annotated[str, typer.Option(help="For a table: the columns to search, as a,b,c.")] = "",
    metric: Annotated[
        str, typer.Option(help="For a table: the columns to optimise; a,b:max for several, each with its direction.")
    ] = "",
    maximize: Annotated[bool, typer.Option("--maximize", help="Larger metrics are better.")] = False,
    categorical: Annotated[str, typer.Option(help="Parameters whose numbers have no order.")] = "",
    conditional: Annotated[
        str, typer.Option(help="Parameters that another one's value makes inactive; their cells are empty then.")
    ] = "",
    where: Annotated[list[str] | None, typer.Option(help="COLUMN=VALUE: use only these rows. Can be repeated.")] = None,
    seconds: Annotated[str | None, typer.Option(help="For a table: the column with a run's own time.")] = None,
    default: Annotated[str, typer.Option(help="The untuned configuration, as a=1,b=2.")] = "",
    truth: Annotated[str, typer.Option(help="True value of replicates: mean or median.")] = "mean",
    noise: Annotated[
        str | None,
        typer.Option(
            help="For a simulator: another noise: none, lognormal, shared-cluster, sbb, bursts-60, -120 or -300."
        ),
    ] = None,
    algorithms: Annotated[
        str, typer.Option(help="Names as in studies, and optuna-tpe, optuna-gp, optuna-cmaes, ax.")
    ] = "auto",
    resampling: Annotated[str, typer.Option(help="Policies, such as none,sedr,thesis,adaptive.")] = "default",
    seeds: Annotated[
        str, typer.Option(help="Seeds as 0-29 or 1,4,7. Each seed is one search with each algorithm and policy.")
    ] = "0-29",
    budget: Annotated[int, typer.Option(help="Number of trials of a search.")] = 100,
    start: Annotated[int, typer.Option(help="Number of these trials in the start design.")] = 10,
    stopping: Annotated[str | None, typer.Option(help="A rule that ends a search earlier, as JSON.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="NAME.KEY=VALUE: option of an algorithm or a policy. Can be repeated.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Number of searches at a time.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the results. A folder with some results is continued.")] = Path(
        "replay"
    ),
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary, or the list, as JSON.")] = False,
) -> None:
    """Compare algorithms and policies on a table of measurements or a simulator, without a running service.

    Writes summary.csv, trajectories.csv and plots. Ctrl-C keeps finished searches; the same command continues.

    Examples:

      trimtab-service replay list

      trimtab-service replay sbb-noisy --algorithms auto,ga,random --resampling none,thesis,adaptive --seeds 0-9 -j 2

      trimtab-service replay runs.csv --parameters algorithm,segment --categorical algorithm --metric seconds
      --where host=a --algorithms auto,optuna-tpe --out comparison
    """
    from rich.console import Console

    from service.core.errors import TrimtabError
    from service.replay import command, measured_table, simulators

    # A file or a pipe is wide enough for the whole table.
    console = Console(width=None if sys.stdout.isatty() else 160, stderr=as_json)
    if subject == "list":
        described = {name: simulators.describe(name).doc for name in simulators.names()}
        if as_json:
            write(json.dumps(described, indent=2))
        else:
            for name, doc in described.items():
                write(f"{name:<12} {doc}")
        return
    try:
        selection = measured_table.Selection(
            parameters=_names(parameters),
            metrics=_names(metric),
            maximize=maximize,
            categorical=_names(categorical),
            conditional=_names(conditional),
            where=_pairs("where", where or ()),
            seconds=seconds,
            default=_pairs("default", _names(default)),
            truth=truth,
        )
        request = command.Request(
            subject=subject,
            columns=selection,
            noise=noise,
            algorithms=_names(algorithms),
            resampling=_names(resampling),
            seeds=seeds,
            budget=budget,
            start=start,
            stopping=stopping,
            options=option or (),
            jobs=jobs,
            out=out,
        )
        code = command.run(request, console)
    except (TrimtabError, RuntimeError, OSError) as error:
        if isinstance(error, TrimtabError):
            raise CommandError(error.message, error.code, 2) from None
        raise CommandError(str(error), "replay_failed") from None
    if as_json and not code:
        with (out / "summary.csv").open(newline="") as file:
            write(json.dumps([_cells(row) for row in csv.DictReader(file)], indent=2))
    if code:
        raise typer.Exit(code)


def _cells(row: dict[str, str]) -> dict[str, str | float | None]:
    """Return a row of the summary with its numbers as numbers; a cell without a meaning is null."""
    texts = ("subject", "algorithm", "resampling")
    return {name: cell if name in texts else float(cell) if cell else None for name, cell in row.items()}


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Return the pairs of COLUMN=VALUE texts. Raises InvalidInput."""
    from service.core.errors import InvalidInput

    found = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not column.strip() or not equals:
            raise InvalidInput(option, text, "COLUMN=VALUE")
        found[column.strip()] = value.strip()
    return found
