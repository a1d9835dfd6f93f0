"""`trimtab measure-grid`: measures a whole grid, or a sample of it, and writes a table for replays."""

import csv
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import trimtab
from trimtab.cli import output
from trimtab.cli.submission import load
from trimtab.errors import Conflict, InvalidInput, JsonValue
from trimtab.objective import Maximize
from trimtab.space import Categorical, Parameter, condition
from trimtab.trial import Trial, TrialState

if TYPE_CHECKING:
    from trimtab.spec import StudySpec
    from trimtab.study import Study

ALGORITHM = "shuffled-grid"
EXAMPLES = """The file is one for `trimtab tune`; its algorithm, policies and trial budget are not looked at.

Examples:

`trimtab measure-grid flags.yaml --replicates 5 --out flags.csv`

`trimtab measure-grid flags.yaml --sample 200 --levels 4 --name flags-grid`

Then, without any service: `trimtab-service replay flags.csv --parameters a,b --metric seconds`; the whole command is
printed at the end.
"""


def measure_grid(
    file: Annotated[Path, typer.Argument(help="A study file, YAML or JSON.", exists=True, dir_okay=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table, CSV.", dir_okay=False)] = Path("grid.csv"),
    replicates: Annotated[int, typer.Option(min=1, help="How often each configuration is measured.")] = 3,
    sample: Annotated[
        int | None, typer.Option(min=1, help="So many configurations, drawn at random, in place of all.")
    ] = None,
    levels: Annotated[int, typer.Option(min=2, help="Values of a parameter that has no grid of its own.")] = 5,
    name: Annotated[str | None, typer.Option(help="The study's name, in place of the file's with -grid.")] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Do not wait: the same command goes on, and writes the table.")
    ] = False,
) -> None:
    """Measure every configuration of a grid on the agents, several times over.

    Each pass takes the configurations in another random order, so that replicates are far apart in time. Ctrl-C writes
    what there is and stops the waiting, not the measuring; the same command goes on with it.
    """
    options: dict[str, JsonValue] = {"replicates": replicates, "levels": levels}
    if sample is not None:
        options["sample"] = sample
    with trimtab.Client() as client:
        described = load(client, file, name)
        if described.spec.execution is None:
            raise InvalidInput.of("component", None, "a component that an agent offers: see `trimtab agent list`")
        wanted = replace(
            described.spec,
            algorithm=ALGORITHM,
            algorithm_options=options,
            noisy=True,
            max_trials=None,
            max_node_hours=None,
            resampling=None,
            pruning=(),
            stopping=None,
            final_check=None,
            start_from=(),
        )
        called = name or f"{described.name or described.subject()}-grid"
        study = client.create_from_spec(called, wanted, load_if_exists=True)
        _check_same(study, options)
        _check_columns(study.spec)
        if not any(agent.online for agent in client.list_agents()):
            output.say("No agent is online: the study waits for one.")
        output.say(f"Study {study.name}")
        if detach:
            output.say("Detached: the same command without --detach goes on, and writes the table.")
            return
        interrupted = False
        try:
            study.wait()
        except KeyboardInterrupt:
            interrupted = True
        trials = study.trials()
        status = study.refresh()
    written = write(out, study.spec, trials)
    output.say(f"{written} measurements written to {out}{_left_out(trials)}.")
    if interrupted:
        output.say(f"The study goes on, and so does the same command; end it: trimtab study stop {study.name}")
        raise typer.Exit(130)
    if status.reason:
        output.say(f"{status.state}: {status.reason}")
    typer.echo(replay_command(out, study.spec))
    if status.state is not trimtab.StudyState.COMPLETED:
        raise typer.Exit(1)


def write(path: Path, spec: "StudySpec", trials: list[Trial]) -> int:
    """Writes a row for each completed trial, the whole file at once. Returns how many.

    Parameters and metrics are columns of their own names; cells of inactive parameters are empty. What is known beside
    them is in columns that begin with `trial.`.

    Raises:
        InvalidInput: the file cannot be written.
    """
    measured = [trial for trial in trials if trial.state is TrialState.COMPLETED]
    parameters = [parameter.name for parameter in spec.space]
    first = [objective.metric for objective in spec.objectives]
    metrics = [*first, *sorted({name for trial in measured for name in trial.metrics} - {*first, *parameters})]
    partial = path.with_name(path.name + ".part")
    try:
        with partial.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            about = ("number", "seconds", "agent", "node", "started_at")
            writer.writerow([*parameters, *metrics, *(f"trial.{name}" for name in about)])
            for trial in measured:
                cells: list[object] = [_cell(trial.params.get(name)) for name in parameters]
                cells += [trial.metrics.get(name) for name in metrics]
                started = None if trial.started_at is None else trial.started_at.isoformat()
                writer.writerow([*cells, trial.number, trial.seconds, trial.agent, trial.node, started])
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{path} cannot be written: {error.strerror}.") from error
    return len(measured)


def replay_command(path: Path, spec: "StudySpec") -> str:
    """The command that replays the table."""
    parts = ["trimtab-service replay", str(path), "--parameters", ",".join(one.name for one in spec.space)]
    for option, chosen in {
        "--categorical": [one.name for one in spec.space if isinstance(one, Categorical) and _numbers(one)],
        "--conditional": [one.name for one in spec.space if condition(one) is not None],
    }.items():
        if chosen:
            parts += [option, ",".join(chosen)]
    metrics = [one.metric + (":max" if isinstance(one, Maximize) else "") for one in spec.objectives]
    return " ".join([*parts, "--metric", ",".join(metrics)])


def _check_same(study: "Study", options: dict[str, JsonValue]) -> None:
    """Raises Conflict where the study of this name, made earlier, measures something else."""
    given = study.spec.algorithm_options
    if study.spec.algorithm == ALGORITHM and all(given.get(key) == options.get(key) for key in {*given, *options}):
        return
    shown = ", ".join(f"{key} {value}" for key, value in sorted(given.items()))
    raise Conflict(
        "study_exists",
        f"Study {study.name} is there already, by {study.spec.algorithm} ({shown}): give the same options to go on with"
        " it, or another --name.",
    )


def _check_columns(spec: "StudySpec") -> None:
    names = {parameter.name for parameter in spec.space}
    for objective in spec.objectives:
        if objective.metric in names:
            raise InvalidInput.of("objectives", objective.metric, "a metric that is not called as a parameter is")


def _left_out(trials: list[Trial]) -> str:
    """In words, what gave no measurement."""
    states = Counter(str(trial.state) for trial in trials if trial.state.finished)
    del states[str(TrialState.COMPLETED)]
    return "".join(f", {count} trials were {state}" for state, count in sorted(states.items()))


def _numbers(parameter: Parameter) -> bool:
    return not all(isinstance(value, str) for value in getattr(parameter, "values", ()))


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
