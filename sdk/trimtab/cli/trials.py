"""`trimtab trial`: list, show and end the trials of a study, and read their output."""

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

import trimtab
from trimtab.cli.completion import study_names
from trimtab.cli.connection import connect
from trimtab.cli.output import echo, out, print_json, say, shown, table
from trimtab.cli.study_json import trial_json
from trimtab.errors import InvalidInput
from trimtab.objective import Objective

if TYPE_CHECKING:
    from trimtab.study import Study

app = typer.Typer(no_args_is_help=True, help="List, show and end trials, and read their output.")

# The number of lines of the output that `show` prints.
LAST_LINES = 20
# Seconds between two reads of an output that is followed.
POLL_SECONDS = 1.0
# The output is stored as its end, which moves. So many of its last characters find the place where it continues.
MATCHED = 2000

Name = Annotated[str, typer.Argument(metavar="STUDY", help="The study's name.", autocompletion=study_names)]
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The number of the trial.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(
    "list", epilog="Examples:\n\n`trimtab trial list my-study`\n\n`trimtab trial list my-study --state FAILED --json`"
)
def list_trials(
    name: Name,
    state: Annotated[list[str] | None, typer.Option(help="Show only trials in this state. Can be repeated.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the trials of a study by number."""
    with connect() as client:
        study = client.get_study(name)
        trials = study.trials(states=[one.upper() for one in state or []])
    if as_json:
        print_json([trial_json(trial) for trial in trials])
        return
    if not trials:
        say("No trials match.")
        return
    limits = ["breaks"] if study.spec.outcome_constraints else []
    titles = [_title(objective) for objective in study.objectives]
    rows = table("trial", "state", "origin", *titles, *limits, "reason")
    for trial in trials:
        values = [_value(trial, objective.metric) for objective in study.objectives]
        broken = [Text("; ".join(trial.breaks))] if limits else []
        rows.add_row(str(trial.number), trial.state, trial.origin, *values, *broken, Text(_first_line(trial.reason)))
    out.print(rows)


@app.command(
    "show", epilog="Examples:\n\n`trimtab trial show my-study 3`\n\n`trimtab trial show my-study 3 --json | jq .params`"
)
def show_trial(name: Name, number: Number, as_json: AsJson = False) -> None:
    """Show the state of a trial, its parameters and metrics, and the last lines of its output."""
    with connect() as client:
        study = client.get_study(name)
        trial = study.trial(number)
        note = next((one for one in study.notes() if one.trial == number), None)
    if as_json:
        measurements = [
            {"step": one.step, "metrics": dict(one.metrics), "elapsed": one.elapsed} for one in trial.measurements
        ]
        own = note and {"text": note.text, "tags": list(note.tags), "attributes": dict(note.attributes)}
        print_json({**trial_json(trial), "measurements": measurements, "note": own, "log": trial.log})
        return
    out.print(Text(f"{name}, trial {number}", "bold"))
    for title, text in _description(trial).items():
        if text:
            out.print(f"  {title:<10} {text}", markup=False, soft_wrap=True)
    params = table("parameter", "value")
    for parameter, value in trial.params.items():
        params.add_row(Text(parameter), Text(shown(value)))
    out.print(params)
    if trial.metrics:
        metrics = table("metric", "value")
        for metric, measured in trial.metrics.items():
            metrics.add_row(Text(metric), Text(shown(measured)))
        out.print(metrics)
    if note is not None and note.attributes:
        attributes = table("attribute", "value")
        for attribute, value in note.attributes.items():
            attributes.add_row(Text(attribute), Text(shown(value)))
        out.print(attributes)
    if note is not None and note.text:
        out.print(f"Note: {note.text}", markup=False, soft_wrap=True)
    lines = trial.log.splitlines()
    if lines:
        kept = lines[-LAST_LINES:]
        which = "Output:" if len(kept) == len(lines) else f"The last {len(kept)} lines of the output:"
        out.print(which, markup=False)
        for line in kept:
            out.print(Text(f"  {line}"), soft_wrap=True)


@app.command(
    "log", epilog="Examples:\n\n`trimtab trial log my-study 3`\n\n`trimtab trial log my-study 3 --follow | grep error`"
)
def print_log(
    name: Name,
    number: Number,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print further output until the trial has ended.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the output of a trial that runs on an agent. The service keeps its last 64 KiB."""
    if as_json and follow:
        raise InvalidInput.of("--json", "true", "either --json or --follow")
    with connect() as client:
        study = client.get_study(name)
        trial = study.trial(number)
        if as_json:
            print_json({"study": name, "trial": number, "state": trial.state, "log": trial.log})
            return
        echo(trial.log, nl=False)
        if not follow:
            if not trial.log:
                say("The trial has no output." if trial.agent else "No agent has run the trial, so it has no output.")
            return
        try:
            state = _follow(study, trial)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
    say(f"Trial {number} is {state}.")


def _follow(study: "Study", trial: trimtab.Trial) -> trimtab.TrialState:
    """Print the output as it comes; return the state in which the trial has ended."""
    seen = trial.log
    while not trial.state.finished:
        time.sleep(POLL_SECONDS)
        trial = study.trial(trial.number)
        echo(_new(seen, trial.log), nl=False)
        seen = trial.log
    return trial.state


def _new(seen: str, log: str) -> str:
    """Return what a log has after the text that was seen; all of it if it began again."""
    end = seen[-MATCHED:]
    at = log.rfind(end) if end else -1
    return log if at < 0 else log[at + len(end) :]


@app.command(
    "fail",
    epilog="Examples:\n\n`trimtab trial fail my-study 3 --reason 'the disk was full'`\n\n"
    "`trimtab trial fail my-study 3 --infeasible --reason 'does not compile'`",
)
def fail_trial(
    name: Name,
    number: Number,
    reason: Annotated[str, typer.Option(help="Why it failed. It is shown with the trial.")],
    infeasible: Annotated[
        bool, typer.Option("--infeasible", help="The configuration cannot work; the trial becomes INFEASIBLE.")
    ] = False,
) -> None:
    """End a running trial of a program that asks and tells, without a result.

    The trial becomes FAILED. To end a trial that runs on an agent, use the console, or stop the study.
    """
    with connect() as client:
        study = client.get_study(name)
        ended = study.tell(number, infeasible=reason) if infeasible else study.tell(number, failed=reason)
    say(f"Trial {number} is {ended.state}.")


def _description(trial: trimtab.Trial) -> dict[str, str]:
    where = f"agent {trial.agent}" if trial.agent else f"client {trial.client_id}" if trial.client_id else ""
    return {
        "state": f"{trial.state}: {trial.reason}" if trial.reason else str(trial.state),
        "breaks": "; ".join(trial.breaks),
        "origin": f"{trial.origin}: {trial.repeat}" if trial.repeat else trial.origin,
        "runs on": f"{where}, node {trial.node}" if trial.node else where,
        "attempt": str(trial.attempt) if trial.attempt > 1 else "",
        "created": shown(trial.created_at or ""),
        "started": shown(trial.started_at or ""),
        "finished": shown(trial.finished_at or ""),
        "seconds": "" if trial.seconds is None else f"{trial.seconds:.6g}",
        "doubt": trial.doubt,
        "interference": str(trial.interference or ""),
        "round": "" if trial.round is None else str(trial.round),
        "machine": trial.machine,
    }


def _title(objective: Objective) -> str:
    return f"{objective.metric} ({objective.unit})" if objective.unit else objective.metric


def _value(trial: trimtab.Trial, metric: str) -> str:
    return f"{trial.metrics[metric]:.6g}" if metric in trial.metrics else ""


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
