"""`trimtab study`: create, look at, steer and export studies."""

import csv
import io
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

import trimtab
from trimtab.cli import configuration, output
from trimtab.cli.following import follow
from trimtab.cli.output import out, print_best, print_json, say, table
from trimtab.cli.submission import create, load
from trimtab.errors import InvalidInput
from trimtab.table import columns, row

if TYPE_CHECKING:
    from trimtab.spec import Placement, StudySpec
    from trimtab.study import Study

app = typer.Typer(no_args_is_help=True, help="Create, look at, steer and export studies.")

Name = Annotated[str, typer.Argument(help="The study's name.")]
Reason = Annotated[str, typer.Option(help="Why; shown with the study.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
File = Annotated[Path, typer.Argument(help="A study file, YAML or JSON.", exists=True, dir_okay=False)]


class Format(StrEnum):
    """Of an exported study."""

    JSON = "json"
    CSV = "csv"


def _connect() -> trimtab.Client:
    # A person who waits wants to know soon that the service is not there.
    return trimtab.Client(retry_seconds=10.0)


@app.command(
    "create", epilog="Examples:\n\n`trimtab study create study.yaml`\n\n`trimtab study create s.json --name s-2`"
)
def create_study(
    file: File,
    name: Annotated[str | None, typer.Option(help="The study's name, in place of the file's.")] = None,
    load_if_exists: Annotated[
        bool, typer.Option("--load-if-exists", help="Go on with the study of this name, if there is one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a study from a file, for a program that asks and tells, or for agents."""
    with _connect() as client:
        study = create(client, load(client, file, name), name=name, load_if_exists=load_if_exists)
    output.say_start(study)
    if as_json:
        print_json(output.study_json(study))
    else:
        typer.echo(study.name)


@app.command(
    "list", epilog="Examples:\n\n`trimtab study list`\n\n`trimtab study list --state ACTIVE --prefix nightly-`"
)
def list_studies(
    state: Annotated[
        list[str] | None, typer.Option(help="Only those in this state; may be given several times.")
    ] = None,
    prefix: Annotated[str, typer.Option(help="Only those whose name begins so.")] = "",
    component: Annotated[str, typer.Option(help="Only those that tune this component.")] = "",
    as_json: AsJson = False,
) -> None:
    """List studies, newest first."""
    with _connect() as client:
        studies = client.list_studies(states=state or [], name_prefix=prefix, component=component)
    if as_json:
        print_json([output.study_json(study) for study in studies])
        return
    if not studies:
        say("There is no such study.")
        return
    shown = table("study", "state", "finished", "looks for", "created")
    for study in studies:
        most = study.spec.max_trials
        finished = f"{study.status.finished_count}/{most}" if most else str(study.status.finished_count)
        shown.add_row(
            Text(study.name),
            study.state,
            finished,
            Text(output.goals(study)),
            output.shown(study.status.created_at or ""),
        )
    out.print(shown)


@app.command("show", epilog="Examples:\n\n`trimtab study show my-study`\n\n`trimtab study show my-study --json`")
def show_study(name: Name, as_json: AsJson = False) -> None:
    """Show where a study stands, and the best that it has found."""
    with _connect() as client:
        study = client.get_study(name)
        if as_json:
            best = [output.trial_json(trial) for trial in study.best_trials]
            print_json({**output.study_json(study), "spec": study.file_content(), "best": best})
            return
        spec, status = study.spec, study.status
        rows = {
            "state": f"{status.state}: {status.reason}" if status.reason else status.state,
            "looks for": output.goals(study),
            "algorithm": _algorithm(study),
            "trials": f"{status.finished_count} finished of {status.trial_count}",
            "resampling": spec.resampling.name if spec.resampling else "none",
            "budget": _budget(spec),
            "created": output.shown(status.created_at or ""),
        }
        if spec.execution is not None:
            rows["runs"] = f"{spec.execution.application} with {spec.execution.component}, on agents"
            rows["placement"] = _placement(spec.execution.placement)
        if spec.pruning:
            rows["pruning"] = ", ".join(policy.name for policy in spec.pruning)
        if status.verdict is not None:
            rows["verdict"] = status.verdict.text
        elif status.search_end_reason:
            rows["verdict"] = f"being checked: {status.search_end_reason}"
        out.print(Text(name, "bold"))
        for title, text in rows.items():
            out.print(f"  {title:<10} {text}", markup=False, soft_wrap=True)
        print_best(study)


def _algorithm(study: "Study") -> str:
    choice = study.status.algorithm_choice
    return study.spec.algorithm if choice is None else f"{study.spec.algorithm}: {choice.name}. {choice.reason}"


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
            "each trial alone on its node" if placement.exclusive else "trials may share a node",
            "one configuration's on different nodes" if placement.spread else "on any node",
        )
    )


@app.command(
    "watch", epilog="Examples:\n\n`trimtab study watch my-study`\n\n`trimtab study watch my-study --json | jq .state`"
)
def watch_study(
    name: Name, as_json: Annotated[bool, typer.Option("--json", help="Print each change as a line of JSON.")] = False
) -> None:
    """Watch a study live until it ends; Ctrl-C stops the watching only."""
    with trimtab.Client() as client:
        study = client.get_study(name)
        if as_json:
            for change in study.watch():
                trials = [output.trial_json(trial) for trial in change.trials]
                output.print_json_line({**output.study_json(study), "trials": trials})
        else:
            follow(study)


@app.command("enqueue", epilog="Example:\n\n`trimtab study enqueue my-study level=O3 unroll=true --count 3`")
def enqueue_trials(
    name: Name,
    values: Annotated[list[str], typer.Argument(metavar="PARAMETER=VALUE...", help="The configuration.")],
    count: Annotated[int, typer.Option(help="How many times it is to be measured.")] = 1,
) -> None:
    """Have a configuration of your own measured before anything else is suggested."""
    with _connect() as client:
        study = client.get_study(name)
        trials = study.enqueue(configuration.parse(study.spec.space, values), count=count)
    say(f"Waiting: trial {', '.join(str(trial.number) for trial in trials)}. Watch: trimtab study watch {name}")


@app.command(
    "change-space",
    epilog="Examples:\n\n`trimtab study change-space my-study threads=4..64 level=O2,O3 --dry-run`\n\n"
    "`trimtab study change-space my-study threads=..128`",
)
def change_space(
    name: Name,
    ranges: Annotated[
        list[str],
        typer.Argument(metavar="PARAMETER=RANGE...", help="MIN..MAX of a number, A,B,C of a list of choices."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say which trials would lie outside.")] = False,
) -> None:
    """Give parameters other ranges while the search goes on.

    Trials outside of them stay, but nothing is learned from them and none is recommended.
    """
    with _connect() as client:
        study = client.get_study(name)
        outside = study.change_space(configuration.parse_ranges(study.spec.space, ranges), validate_only=dry_run)
    trials = f"{outside.finished} finished, {outside.running} running and {outside.waiting} waiting trials"
    typer.echo(
        f"{trials} would lie outside."
        if dry_run
        else f"Changed: {trials} lie outside. Those that waited are withdrawn."
    )


@app.command(
    "extend",
    epilog="Examples:\n\n`trimtab study extend my-study --trials 200`\n\n"
    "`trimtab study extend my-study --seconds none`",
)
def extend_budget(
    name: Name,
    trials: Annotated[str | None, typer.Option(help="How many in all; `none`: no limit.")] = None,
    seconds: Annotated[str | None, typer.Option(help="From the first trial; `none`: no limit.")] = None,
    node_hours: Annotated[str | None, typer.Option(help="Of the trials' own running time; `none`: no limit.")] = None,
) -> None:
    """Change what the search may spend in all. What is left out stays."""
    given = {"max_trials": trials, "max_time": seconds, "max_node_hours": node_hours}
    changes = {key: _limit(key, text) for key, text in given.items() if text is not None}
    if not changes:
        raise InvalidInput.of("budget", None, "--trials, --seconds or --node-hours")
    with _connect() as client:
        study = client.get_study(name)
        study.extend_budget(**changes)  # type: ignore[arg-type]  # the service says what is wrong with a number
        typer.echo(f"The budget is now: {_budget(study.spec)}.")


def _limit(name: str, text: str) -> float | None:
    try:
        return None if text == "none" else float(text)
    except ValueError:
        raise InvalidInput.of(name, text, "a number, or none for no limit") from None


@app.command("pause", epilog="Example:\n\n`trimtab study pause my-study --reason maintenance`")
def pause_study(name: Name, reason: Reason = "") -> None:
    """Pause a study: nothing more is suggested until it is resumed."""
    with _connect() as client:
        client.get_study(name).pause(reason)
    say(f"Paused. Go on: trimtab study resume {name}")


@app.command("resume", epilog="Example:\n\n`trimtab study resume my-study`")
def resume_study(name: Name) -> None:
    """Resume a paused study."""
    with _connect() as client:
        client.get_study(name).resume()
    say("Resumed.")


@app.command("stop", epilog='Example:\n\n`trimtab study stop my-study --reason "good enough"`')
def stop_study(name: Name, reason: Reason = "") -> None:
    """End a study for good. What it has found stays."""
    with _connect() as client:
        client.get_study(name).stop(reason)
    say(f"Stopped. What it found: trimtab study show {name}")


@app.command("delete", epilog="Example:\n\n`trimtab study delete my-study --yes`")
def delete_study(name: Name, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Delete a study with all its trials."""
    with _connect() as client:
        study = client.get_study(name)
        if not yes:
            typer.confirm(f"Delete {name} with its {study.status.trial_count} trials?", abort=True, err=True)
        client.delete_study(name)
    say("Deleted.")


@app.command("export", epilog="Examples:\n\n`trimtab study export my-study --format csv -o trials.csv`")
def export_study(
    name: Name,
    form: Annotated[Format, typer.Option("--format", help="JSON has the specification as well.")] = Format.JSON,
    to: Annotated[Path | None, typer.Option("-o", "--output", help="The file; standard output if left out.")] = None,
) -> None:
    """Export a study's trials."""
    with _connect() as client:
        study = client.get_study(name)
        trials = study.trials()
        whole = output.full_json(study, trials) if form is Format.JSON else None
    if whole is not None:
        text = output.to_json(whole) + "\n"
    else:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, columns(study.spec, trials), lineterminator="\n")
        writer.writeheader()
        for trial in trials:
            writer.writerow({key: output.plain(value) for key, value in row(trial).items()})
        text = buffer.getvalue()
    if to is None:
        typer.echo(text, nl=False)
        return
    try:
        to.write_text(text)
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{to} cannot be written: {error.strerror}.") from error
    say(f"{len(trials)} trials written to {to}.")
