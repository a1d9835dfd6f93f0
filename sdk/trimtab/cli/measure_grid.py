"""`trimtab measure-grid`: measure a whole grid or a sample of it, and write a table for replays."""

import csv
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import trimtab
from trimtab.cli import output
from trimtab.cli.study_json import study_json
from trimtab.cli.submission import load
from trimtab.errors import Conflict, InvalidInput, JsonValue
from trimtab.objective import Maximize
from trimtab.space import Categorical, Parameter, condition
from trimtab.trial import Trial, TrialState

if TYPE_CHECKING:
    from trimtab.spec import StudySpec
    from trimtab.study import Study

ALGORITHM = "shuffled-grid"
EXAMPLES = """The study file is the same as for `trimtab tune`; its algorithm, policies and trial budget are ignored.

Examples:

`trimtab measure-grid flags.yaml --replicates 5 --out flags.csv`

`trimtab measure-grid flags.yaml --sample 200 --levels 4 --name flags-grid`

The command prints a `trimtab-service replay` command for the table at its end. A replay needs no running service, for
example: `trimtab-service replay flags.csv --parameters a,b --metric seconds`
"""


def measure_grid(
    file: Annotated[Path, typer.Argument(help="A study file, YAML or JSON.", exists=True, dir_okay=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The CSV file to write.", dir_okay=False)] = Path("grid.csv"),
    replicates: Annotated[int, typer.Option(min=1, help="How many times to measure each configuration.")] = 3,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Measure this number of random configurations instead of all.")
    ] = None,
    levels: Annotated[int, typer.Option(min=2, help="Number of values for a parameter without its own grid.")] = 5,
    name: Annotated[
        str | None, typer.Option(help="The study's name. [default: the name in the file and -grid]")
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Do not wait. Run the same command again to get the table.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the study, the file and the command as JSON.")] = False,
) -> None:
    """Measure every configuration of a grid on the agents, several times.

    Each pass measures the configurations in another random order, so that replicates are far apart in time. Ctrl-C
    writes the results so far; the agents continue to measure. Run the same command again to continue.
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
            final_check=False,
            start_from=(),
        )
        called = name or f"{described.name or described.subject()}-grid"
        study = client.create_from_spec(called, wanted, load_if_exists=True)
        _check_same(study, options)
        _check_columns(study.spec)
        if not any(agent.online for agent in client.list_agents()):
            output.say("No agent is online. The study starts when an agent connects.")
        output.say(f"Study {study.name}")
        if detach:
            if as_json:
                output.print_json(study_json(study))
            output.say("Detached. Run the same command without --detach to wait and write the table.")
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
        output.say(f"The study continues. Run the same command to wait for it, or: trimtab study stop {study.name}")
        raise typer.Exit(130)
    if status.reason:
        output.say(f"{status.state}: {status.reason}")
    replay = replay_command(out, study.spec)
    if as_json:
        output.print_json({**study_json(study), "file": str(out), "rows": written, "replay": replay})
    else:
        output.echo(replay)
    if status.state is not trimtab.StudyState.COMPLETED:
        raise typer.Exit(1)


def write(path: Path, spec: "StudySpec", trials: list[Trial]) -> int:
    """Write a row for each completed trial in one atomic step; return the number of rows.

    The columns of parameters and metrics have their names; cells of inactive parameters are empty. Further columns
    begin with `trial.`.

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
    """Return the command that replays the table."""
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
    """Raise Conflict if an earlier study of this name measures another grid."""
    given = study.spec.algorithm_options
    if study.spec.algorithm == ALGORITHM and all(given.get(key) == options.get(key) for key in {*given, *options}):
        return
    shown = ", ".join(f"{key} {value}" for key, value in sorted(given.items()))
    raise Conflict(
        "study_exists",
        f"Study {study.name} exists already, with algorithm {study.spec.algorithm} ({shown}). Give the same options to"
        " continue it, or another --name.",
    )


def _check_columns(spec: "StudySpec") -> None:
    names = {parameter.name for parameter in spec.space}
    for objective in spec.objectives:
        if objective.metric in names:
            raise InvalidInput.of("objectives", objective.metric, "a metric whose name is not also a parameter's name")


def _left_out(trials: list[Trial]) -> str:
    """Describe the trials that gave no measurement."""
    states = Counter(str(trial.state) for trial in trials if trial.state.finished)
    del states[str(TrialState.COMPLETED)]
    return "".join(f"; {count} trials are {state}" for state, count in sorted(states.items()))


def _numbers(parameter: Parameter) -> bool:
    return not all(isinstance(value, str) for value in getattr(parameter, "values", ()))


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value
