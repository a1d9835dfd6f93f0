"""`trimtab study`: create, show, control and export studies."""

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

import trimtab
from trimtab import outliers
from trimtab._internal.study.trial_rows import columns, row
from trimtab.cli import configuration, csv_cells, output
from trimtab.cli.completion import study_names
from trimtab.cli.connection import connect
from trimtab.cli.following import follow
from trimtab.cli.output import out, print_json, say, table
from trimtab.cli.results import goals, print_best, say_start
from trimtab.cli.study_json import full_json, result_json, study_json, trial_json
from trimtab.cli.submission import create, load
from trimtab.errors import InvalidInput

if TYPE_CHECKING:
    from trimtab.spec import Placement, StudySpec
    from trimtab.study import Study

app = typer.Typer(no_args_is_help=True, help="Create, show, control and export studies.")

Name = Annotated[str, typer.Argument(help="The study's name.", autocompletion=study_names)]
Reason = Annotated[str, typer.Option(help="The reason. It is shown with the study.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
File = Annotated[Path, typer.Argument(help="A study file, YAML or JSON.", exists=True, dir_okay=False)]


class Format(StrEnum):
    """The format of an exported study."""

    JSON = "json"
    CSV = "csv"


@app.command(
    "create", epilog="Examples:\n\n`trimtab study create study.yaml`\n\n`trimtab study create s.json --name s-2`"
)
def create_study(
    file: File,
    name: Annotated[str | None, typer.Option(help="The study's name. It replaces the name in the file.")] = None,
    load_if_exists: Annotated[
        bool, typer.Option("--load-if-exists", help="Continue the study of this name if it exists.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a study from a file. Its trials run on agents, or in a program that asks and tells."""
    with connect() as client:
        study = create(client, load(client, file, name), name=name, load_if_exists=load_if_exists)
    say_start(study)
    if as_json:
        print_json(study_json(study))
    else:
        output.echo(study.name)


@app.command(
    "list", epilog="Examples:\n\n`trimtab study list`\n\n`trimtab study list --state ACTIVE --prefix nightly-`"
)
def list_studies(
    state: Annotated[list[str] | None, typer.Option(help="Show only studies in this state. Can be repeated.")] = None,
    prefix: Annotated[str, typer.Option(help="Show only studies whose name starts with this text.")] = "",
    component: Annotated[str, typer.Option(help="Show only studies that tune this component.")] = "",
    as_json: AsJson = False,
) -> None:
    """List studies, newest first."""
    with connect() as client:
        studies = client.list_studies(states=state or [], name_prefix=prefix, component=component)
    if as_json:
        print_json([study_json(study) for study in studies])
        return
    if not studies:
        say("No studies match.")
        return
    shown = table("study", "state", "finished", "objectives", "created")
    for study in studies:
        most = study.spec.max_trials
        finished = f"{study.status.finished_count}/{most}" if most else str(study.status.finished_count)
        shown.add_row(
            Text(study.name),
            study.state,
            finished,
            Text(goals(study)),
            output.shown(study.status.created_at or ""),
        )
    out.print(shown)


@app.command("show", epilog="Examples:\n\n`trimtab study show my-study`\n\n`trimtab study show my-study --json`")
def show_study(name: Name, as_json: AsJson = False) -> None:
    """Show the status of a study and its best configuration."""
    with connect() as client:
        study = client.get_study(name)
        if as_json:
            print_json({**study_json(study), "spec": study.file_content(), **result_json(study)})
            return
        spec, status = study.spec, study.status
        rows = {
            "state": f"{status.state}: {status.reason}" if status.reason else status.state,
            "objectives": goals(study),
            "algorithm": _algorithm(study),
            "trials": f"{status.finished_count} of {status.trial_count} finished",
            "resampling": spec.resampling.name if spec.resampling else "none",
            "budget": _budget(spec),
            "created": output.shown(status.created_at or ""),
        }
        if spec.stability is not None:
            rows["stability"] = _stability(spec.stability)
        if spec.execution is not None:
            rows["runs"] = (
                f"application {spec.execution.application} with component {spec.execution.component}, on agents"
            )
            rows["placement"] = _placement(spec.execution.placement)
        if status.fixed:
            rows["fixed"] = ", ".join(f"{name} = {value}" for name, value in status.fixed.items())
        if status.removed:
            rows["removed"] = ", ".join(f"{name} = {value}" for name, value in status.removed.items())
        if status.space_edits:
            rows["space edit"] = status.space_edits[-1].trials.text
        if spec.pruning:
            rows["pruning"] = ", ".join(policy.name for policy in spec.pruning)
        if status.search_end_reason and status.state == "ACTIVE":
            rows["check"] = f"final check in progress; the search ended: {status.search_end_reason}"
        out.print(Text(name, "bold"))
        if spec.description:
            out.print(indent(spec.description, "  "), markup=False, soft_wrap=True)
        for title, text in rows.items():
            out.print(f"  {title:<10} {text}", markup=False, soft_wrap=True)
        print_best(study)


def _algorithm(study: "Study") -> str:
    choice = study.status.algorithm_choice
    return study.spec.algorithm if choice is None else f"{study.spec.algorithm}: {choice.name}. {choice.reason}"


def _stability(given: Mapping[str, Any]) -> str:
    nodes = ", ".join(str(one) for one in given.get("nodes", ()))
    times = f", the last one {given['times']:.0f} s after the first run" if given.get("times") else ""
    return f"stages on {nodes} nodes{times}"


def _budget(spec: "StudySpec") -> str:
    parts = [
        f"{spec.max_trials} trials" if spec.max_trials else "",
        f"{spec.max_time:.0f} s" if spec.max_time else "",
        f"{spec.max_node_hours:g} node-hours" if spec.max_node_hours else "",
    ]
    return " or ".join(part for part in parts if part) or "none"


def _placement(placement: "Placement") -> str:
    return ", ".join(
        (
            "each trial has a node for itself" if placement.exclusive else "trials may share a node",
            "trials of one configuration run on different nodes" if placement.spread else "they run on any node",
        )
    )


@app.command(
    "watch", epilog="Examples:\n\n`trimtab study watch my-study`\n\n`trimtab study watch my-study --json | jq .state`"
)
def watch_study(
    name: Name, as_json: Annotated[bool, typer.Option("--json", help="Print each change as a line of JSON.")] = False
) -> None:
    """Follow a study live until it ends. Ctrl-C does not stop the study."""
    with trimtab.Client() as client:
        study = client.get_study(name)
        if as_json:
            for change in study.watch():
                trials = [trial_json(trial) for trial in change.trials]
                output.print_json_line({**study_json(study), "trials": trials})
        else:
            follow(study)


@app.command(
    "prospects",
    epilog="Examples:\n\n`trimtab study prospects my-study`\n\n`trimtab study prospects my-study --json`",
)
def show_prospects(
    name: Name,
    timeout: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for the computation.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Show how probable it is that a study can find a gain over the default.

    A worker computes the probabilities from the finished trials of the study, at least 8, one of which has to be the
    default. Stop the study if they are too small for its cost.
    """
    with connect() as client:
        found = client.get_study(name).prospects(timeout)
    if as_json:
        print_json({"prospects": [{"gain": gain, "probability": one} for gain, one in found.items()]})
    elif found:
        for gain, probability in found.items():
            out.print(f"a gain of {100 * gain:g} % or more: {100 * probability:.0f} %", markup=False)
    else:
        say(
            "Nothing is known yet. There must be 8 finished trials, one of them of the default; studies with several"
            " objectives, outcome constraints or a context have no prospects."
        )


@app.command(
    "outliers",
    epilog="Examples:\n\n`trimtab study outliers my-study`\n\n`trimtab study outliers my-study --metric p99_ms --json`",
)
def show_outliers(
    name: Name,
    metric: Annotated[str, typer.Option(help="The metric to look at; without it the first objective.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show the runs that stand out from other runs of their configuration, grouped by what else stood out.

    Counters and the load of the machine say whether the program or the machine is the cause. Configurations with at
    least 3 runs are compared. Nothing is changed: trials stay as they are.
    """
    with connect() as client:
        study = client.get_study(name)
        trials = study.trials(["COMPLETED"])
        chosen = metric or study.spec.objectives[0].metric
        known = sorted({one for trial in trials for one in trial.metrics})
        if metric and metric not in known:
            raise InvalidInput.of("metric", metric, f"a metric of its finished trials: {', '.join(known)}")
        found = outliers.groups(trials, chosen)
    if as_json:
        print_json({"groups": [{"signs": one.signs, "trials": one.trials, "ratio": one.ratio} for one in found]})
    elif found:
        for one in found:
            out.print(str(one), markup=False, soft_wrap=True)
    else:
        say("No run stands out among configurations with at least 3 runs.")


@app.command("enqueue", epilog="Example:\n\n`trimtab study enqueue my-study level=O3 unroll=true --count 3`")
def enqueue_trials(
    name: Name,
    values: Annotated[
        list[str],
        typer.Argument(
            metavar="PARAMETER=VALUE...", help="The configuration. Parameters that are left out take their defaults."
        ),
    ],
    count: Annotated[int, typer.Option(help="How many times to measure it.")] = 1,
) -> None:
    """Measure a configuration of your choice before the algorithm's next suggestions."""
    with connect() as client:
        study = client.get_study(name)
        trials = study.enqueue(configuration.parse(study.spec.space, values), count=count)
    numbers = ", ".join(str(trial.number) for trial in trials)
    say(f"Enqueued as trial {numbers}. To follow it: trimtab study watch {name}")


@app.command(
    "change-space",
    epilog="Examples:\n\n`trimtab study change-space my-study threads=4..64 level=O2,O3 --dry-run`\n\n"
    "`trimtab study change-space my-study threads=..128`",
)
def change_space(
    name: Name,
    ranges: Annotated[
        list[str],
        typer.Argument(metavar="PARAMETER=RANGE...", help="MIN..MAX for a number, A,B,C for a list of values."),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; only count the trials that would lie outside.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Change the ranges of parameters while the search runs.

    Trials outside the new ranges stay, but the algorithm does not learn from them and none is recommended.
    """
    with connect() as client:
        study = client.get_study(name)
        outside = study.change_space(configuration.parse_ranges(study.spec.space, ranges), validate_only=dry_run)
    if as_json:
        print_json(asdict(outside))
        return
    trials = f"{outside.finished} finished, {outside.running} running and {outside.waiting} waiting trials"
    output.echo(
        f"{trials} would lie outside the new ranges."
        if dry_run
        else f"Changed: {trials} lie outside the new ranges. The waiting ones are withdrawn."
    )


@app.command(
    "edit-space",
    epilog="Examples:\n\n`trimtab study edit-space my-study --fix threads=16 --dry-run`\n\n"
    "`trimtab study edit-space my-study --remove level=O2 --free unroll`\n\n"
    """`trimtab study edit-space my-study --add 'cache={"type": "int", "min": 1, "max": 64, "default": 8}'`""",
)
def edit_space(
    name: Name,
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARAMETER=JSON",
            help="Add a parameter, as in a study file. Its default is its value in the trials so far. Can be repeated.",
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARAMETER[=VALUE]",
            help="Remove a parameter, which has this value from now on (without a value: its default). "
            "Can be repeated.",
        ),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(metavar="PARAMETER=VALUE", help="Fix a parameter to a value. Can be repeated."),
    ] = None,
    free: Annotated[
        list[str] | None, typer.Option(metavar="PARAMETER", help="Free a fixed parameter. Can be repeated.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(help="Change the total number of trials too; a COMPLETED study needs more.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; only say how the trials would count.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add, remove, fix and free parameters while the search runs.

    A trial that lacks an added parameter counts with its default. A trial with another value of a fixed or removed
    parameter is left out of what the algorithm learns from.
    """
    with connect() as client:
        study = client.get_study(name)
        space = study.spec.space
        found = study.edit_space(
            add=configuration.parse_declarations(add or []),
            remove=configuration.parse_removals(space, remove or []),
            fix=configuration.parse(space, fix or []),
            free=free or [],
            budget=None if trials is None else {"max_trials": trials},
            validate_only=dry_run,
        )
    if as_json:
        print_json(asdict(found))
        return
    output.echo(f"{'Not changed' if dry_run else 'Edited'}: {found}")


@app.command(
    "extend",
    epilog="Examples:\n\n`trimtab study extend my-study --trials 200`\n\n"
    "`trimtab study extend my-study --seconds none`",
)
def extend_budget(
    name: Name,
    trials: Annotated[str | None, typer.Option(help="Total number of trials; `none` for no limit.")] = None,
    seconds: Annotated[str | None, typer.Option(help="Seconds from the first trial; `none` for no limit.")] = None,
    node_hours: Annotated[
        str | None, typer.Option(help="Running time of the trials, in node-hours; `none` for no limit.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change the total budget of the search. Limits that you omit stay the same.

    A COMPLETED study that has more budget now continues its search.
    """
    given = {"max_trials": trials, "max_time": seconds, "max_node_hours": node_hours}
    changes = {key: _limit(key, text) for key, text in given.items() if text is not None}
    if not changes:
        raise InvalidInput.of("budget", None, "at least one of --trials, --seconds and --node-hours")
    with connect() as client:
        study = client.get_study(name)
        study.extend_budget(**changes)  # type: ignore[arg-type]  # the service checks the numbers
        if as_json:
            print_json({key: getattr(study.spec, key) for key in given})
            return
        output.echo(f"The budget is now: {_budget(study.spec)}.")


@app.command(
    "check", epilog="Examples:\n\n`trimtab study check my-study`\n\n`trimtab study check my-study --trials 40`"
)
def check_study(
    name: Name,
    trials: Annotated[int | None, typer.Option(help="Maximum number of trials of the check.")] = None,
    width: Annotated[
        float | None, typer.Option(help="Target width of the gain's interval: 0.05 is 5 % of the default's value.")
    ] = None,
    level: Annotated[float | None, typer.Option(help="Confidence level of the interval, for example 0.95.")] = None,
    effects: Annotated[
        int | None,
        typer.Option(help="Maximum number of further trials that find which changes carry a proven gain: 0, or 16+."),
    ] = None,
) -> None:
    """Measure the gain of a COMPLETED study by a new final check.

    It measures the best configuration (with several objectives, members of the Pareto set) and the default alternately.
    Its verdict replaces the earlier one.
    """
    with connect() as client:
        client.get_study(name).check(width=width, max_trials=trials, level=level, effects=effects)
    say(f"The final check has begun. To follow it: trimtab study watch {name}")


def _limit(name: str, text: str) -> float | None:
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise InvalidInput.of(name, text, "a number, or `none` for no limit") from None


@app.command("pause", epilog="Example:\n\n`trimtab study pause my-study --reason maintenance`")
def pause_study(name: Name, reason: Reason = "") -> None:
    """Pause a study: nothing more is suggested until it is resumed."""
    with connect() as client:
        client.get_study(name).pause(reason)
    say(f"Paused. To continue: trimtab study resume {name}")


@app.command("resume", epilog="Example:\n\n`trimtab study resume my-study`")
def resume_study(name: Name) -> None:
    """Resume a paused study."""
    with connect() as client:
        client.get_study(name).resume()
    say("Resumed.")


@app.command("stop", epilog='Example:\n\n`trimtab study stop my-study --reason "good enough"`')
def stop_study(name: Name, reason: Reason = "") -> None:
    """End a study for good. Its results stay."""
    with connect() as client:
        client.get_study(name).stop(reason)
    say(f"Stopped. To see its results: trimtab study show {name}")


@app.command("delete", epilog="Example:\n\n`trimtab study delete my-study --yes`")
def delete_study(
    name: Name, yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False
) -> None:
    """Delete a study and all its trials."""
    with connect() as client:
        study = client.get_study(name)
        if not yes:
            typer.confirm(f"Delete {name} and its {study.status.trial_count} trials?", abort=True, err=True)
        client.delete_study(name)
    say("Deleted.")


@app.command("export", epilog="Example:\n\n`trimtab study export my-study --format csv -o trials.csv`")
def export_study(
    name: Name,
    form: Annotated[Format, typer.Option("--format", help="JSON also contains the specification.")] = Format.JSON,
    to: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write. [default: standard output]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Export the trials of a study as JSON or CSV."""
    if as_json and form is Format.CSV:
        raise InvalidInput.of("--json", "true", "either --json or --format csv")
    with connect() as client:
        study = client.get_study(name)
        trials = study.trials()
        whole = full_json(study, trials) if form is Format.JSON else None
    if whole is not None:
        text = output.to_json(whole) + "\n"
    else:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, columns(study.spec, trials), lineterminator="\n")
        writer.writeheader()
        for trial in trials:
            writer.writerow({key: csv_cells.safe(output.plain(value)) for key, value in row(trial).items()})
        text = buffer.getvalue()
    if to is None:
        output.echo(text, nl=False)
        return
    try:
        to.write_text(text)
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{to} cannot be written: {error.strerror}.") from error
    say(f"{len(trials)} trials written to {to}.")
