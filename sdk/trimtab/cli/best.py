"""`trimtab best`: the best known settings of a component."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from trimtab.cli.connection import connect
from trimtab.cli.output import out, print_json, say, shown, table
from trimtab.cli.results import print_verdict
from trimtab.fleet import BestSettings
from trimtab.objective import Maximize

EXAMPLES = "Examples:\n\n`trimtab best gcc-flags`\n\n`trimtab best gcc-flags --json`"


def best(
    component: Annotated[str, typer.Argument(help="The name of the component.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the best known settings of a component for each application, proven gains first."""
    with connect() as client:
        found = client.best_settings(component)
    if as_json:
        print_json([_json(one) for one in found])
        return
    if not found:
        say(f"No study has found better settings of {component} yet.")
        return
    for one in found:
        _print(one)


def _json(one: BestSettings) -> dict[str, object]:
    goal = "maximize" if isinstance(one.objective, Maximize) else "minimize"
    return {**asdict(one), "objective": {**asdict(one.objective), "goal": goal}}


def _print(one: BestSettings) -> None:
    where = [one.application or "first application", *(f"{name} {shown(value)}" for name, value in one.context.items())]
    out.print(f"{', '.join(where)}, by study {one.study}", markup=False, soft_wrap=True)
    print_verdict(one.objective, one.verdict, "Expected")
    if one.machine:
        out.print(f"Machine: {one.machine}", markup=False, soft_wrap=True)
    if one.elsewhere:
        out.print(f"{'Proven' if one.verdict.proven else 'Measured'} on another machine.", markup=False)
    chosen = table("parameter", "value")
    for name, value in one.params.items():
        chosen.add_row(Text(name), Text(shown(value)))
    out.print(chosen)
