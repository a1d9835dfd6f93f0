"""`trimtab best`: the best known settings of a component."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from trimtab.cli import settings
from trimtab.cli.connection import connect
from trimtab.cli.contexts import given_context
from trimtab.cli.output import out, print_json, say, shown, table
from trimtab.cli.results import print_best, print_verdict
from trimtab.cli.settings import Form, OfTrial, To
from trimtab.errors import Conflict, InvalidInput, NotFound
from trimtab.fleet import BestSettings
from trimtab.objective import Maximize, Objective

if TYPE_CHECKING:
    import trimtab
    from trimtab.study import Study

EXAMPLES = (
    "Examples:\n\n`trimtab best gcc-flags`\n\n`trimtab best gcc-flags --json`\n\n"
    "`trimtab best redis --format template --out redis.conf`\n\n"
    "`trimtab best my-study --format env`"
)


def best(
    component: Annotated[str, typer.Argument(help="The name of the component, or of a study.", metavar="NAME")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    application: Annotated[str | None, typer.Option(help="Only the settings for this application.")] = None,
    form: Form = None,
    trial: OfTrial = None,
    context: Annotated[
        list[str] | None, typer.Option("--context", help="NAME=VALUE of a context variable; may be repeated.")
    ] = None,
    to: To = None,
) -> None:
    """Show the best known settings of a component for each application, proven gains first.

    With `--format`, print them ready to use: as variables, as the file of the program, or as its command.
    """
    if form is None and (trial or context or to):
        raise InvalidInput.of("--format", None, "a format with --trial, --context and --out, such as env")
    if form is not None and as_json:
        raise InvalidInput.of("--json", "true", "either --json or --format json")
    with connect() as client:
        found = client.best_settings(component)
        if application is not None:
            found = [one for one in found if one.application == application]
        if form is not None:
            study = _study(client, component, found)
            settings.show(study, form, trial=trial, context=given_context(context or []) or None, to=to)
            return
        # Studies that ask and tell, such as those of Optuna, have no component.
        alone = None if found or application is not None else _study_named(client, component)
        if alone is not None:
            if as_json:
                print_json(_of_study(alone))
            else:
                print_best(alone)
            return
    if as_json:
        print_json([_json(one) for one in found])
        return
    if not found:
        say(f"No study has found better settings of {component} yet.")
        return
    for one in found:
        _print(one)


def _study_named(client: "trimtab.Client", name: str) -> "Study | None":
    try:
        return client.get_study(name)
    except NotFound:
        return None


def _study(client: "trimtab.Client", name: str, found: list[BestSettings]) -> "Study":
    """Return the study whose settings are meant: the best of a component, or the study of this name.

    A proven gain goes before others.

    Raises:
        Conflict: the component has settings for several applications or objectives.
        NotFound: neither a component with settings nor a study has the name.
    """
    certain = [one for one in found if one.verdict.proven]
    found = certain or found
    studies = list(dict.fromkeys(one.study for one in found))
    if len(studies) > 1:
        where = ", ".join(f"{one.application or 'the first'} by study {one.study}" for one in found)
        raise Conflict(
            "several_settings",
            f"Component {name} has settings for {where}. Choose one with --application, or give the study's name.",
        )
    try:
        return client.get_study(studies[0] if studies else name)
    except NotFound as error:
        if studies or error.code != "study_not_found":
            raise
        raise NotFound(
            "no_settings", f"No study has found better settings of a component {name}, and no study has this name."
        ) from None


def _json(one: BestSettings) -> dict[str, object]:
    return {**asdict(one), "objective": _objective_json(one.objective)}


def _objective_json(objective: Objective) -> dict[str, object]:
    return {**asdict(objective), "goal": "maximize" if isinstance(objective, Maximize) else "minimize"}


def _of_study(study: "Study") -> list[dict[str, object]]:
    """Return the best settings of a study without a component, with the keys of others and the metrics.

    A study with several objectives has an entry for each trial of its Pareto front, without a verdict.
    """
    verdict = study.verdict
    rest = {
        "application": "",
        "study": study.name,
        "objective": _objective_json(study.objectives[0]),
        "verdict": None if verdict is None else asdict(verdict),
        "digest": "",
        "machine": "",
        "elsewhere": False,
        "context": {},
    }
    return [
        {**rest, "params": (verdict and verdict.params) or trial.params, "metrics": trial.metrics}
        for trial in study.best_trials
    ]


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
