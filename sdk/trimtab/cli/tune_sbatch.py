"""`trimtab tune-sbatch`: tune a batch script of one's own, with jobs of one's own."""

import fcntl
import logging
import re
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

import trimtab
from trimtab.cli import script_component, script_trials
from trimtab.cli.output import echo, print_json, say
from trimtab.cli.results import print_best, say_start
from trimtab.cli.script_component import ScriptComponent
from trimtab.cli.script_trials import JobFailed, ScriptTrials
from trimtab.cli.study_json import result_json, study_json
from trimtab.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from trimtab.objective import Objective
    from trimtab.study import Study

EXAMPLES = """A value reaches the script as an environment variable with the parameter's name, or as --pass says:
another variable, an option of sbatch, or an argument ("$1", "$2", ... in the order of --param).

Examples:

`trimtab tune-sbatch job.sh --param threads=1..16:4 --pass threads=env:OMP_NUM_THREADS --pass
'threads=option:--cpus-per-task={value}'`

`trimtab tune-sbatch job.sh --param tile=16,32,64 --pass tile=argument --metric 'rate=regex:rate: (\\\\S+)' --maximize
rate --trials 40 --parallel 4`

`trimtab tune-sbatch job.sh --param 'size={"type": "int", "min": 1, "max": 4096, "log": true, "default": 64}' --dry-run`

`trimtab tune-sbatch job.sh --param tile=16,32,64 --slurm-option=--partition=short --slurm-option=--exclusive`

`trimtab tune-sbatch job.sh --param tile=16,32,64 --write-component components/job`
"""
SCRIPT, COMPONENT = "job.sh", "component.yaml"


def tune_sbatch(
    script: Annotated[Path, typer.Argument(help="A batch script for sbatch.", exists=True, dir_okay=False)],
    param: Annotated[
        list[str],
        typer.Option(
            help="A parameter: NAME=MIN..MAX or NAME=A,B,C, and :DEFAULT, the value that the script has now (else the"
            " first); or NAME={JSON} with the keys of a component file. Can be repeated."
        ),
    ],
    pass_: Annotated[
        list[str] | None,
        typer.Option(
            "--pass",
            help="How a value reaches the script: NAME=env:VARIABLE, NAME=option:--OPTION={value} for sbatch, or"
            " NAME=argument[:TEXT]. Can be repeated.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="A metric: NAME=wall_time, NAME=cpu_time, NAME=peak_memory, NAME=bytes_written, NAME=regex:PATTERN,"
            " NAME=json:PATH or NAME=TOOL:FIELD from the output, or NAME={JSON} with the keys of a component file."
            " Can be repeated. [default: seconds=wall_time]"
        ),
    ] = None,
    minimize: Annotated[
        list[str] | None, typer.Option(help="A metric to minimize. [default: the first metric]")
    ] = None,
    maximize: Annotated[list[str] | None, typer.Option(help="A metric to maximize.")] = None,
    constraint: Annotated[
        list[str] | None, typer.Option(help='A condition on the parameters, such as "threads * tile <= 64".')
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="Number of trials of the search.")] = 30,
    parallel: Annotated[int, typer.Option(min=1, help="Number of jobs at the same time, pending ones included.")] = 1,
    timeout: Annotated[float, typer.Option(min=1.0, help="Seconds that a job may run; the queue does not count.")] = (
        3600.0
    ),
    slurm_option: Annotated[
        list[str] | None,
        typer.Option(help="An option of sbatch for every job, such as --partition=short. Can be repeated."),
    ] = None,
    own_folder: Annotated[
        bool,
        typer.Option("--own-folder", help="Run each job in an empty folder of its own, not in the current folder."),
    ] = False,
    final_check: Annotated[
        bool, typer.Option(help="Afterwards measure the best and the default alternately, to prove the gain.")
    ] = True,
    name: Annotated[
        str | None, typer.Option(help="The study's name. The same command with the same name continues it.")
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="The folder for the files of the jobs, on a file system that the nodes share.")
    ] = Path("trimtab-sbatch"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what the job with the defaults would run, and submit nothing.")
    ] = False,
    write_component: Annotated[
        Path | None,
        typer.Option(
            help="Write the component file and a copy of the script to this folder, and do nothing else. The"
            " component has the name of the folder, or --name."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the result, with the command that uses it, as JSON.")
    ] = False,
) -> None:
    """Tune a batch script of your own, with jobs that you submit yourself.

    The command runs on a login node of the cluster, for as long as the study takes, and submits one job for each trial
    with your own rights. It needs the program trimtab-agent on this machine, and no agent that runs. The service
    learns the parameters and metrics, and neither the script nor its output except for the reasons of failures.

    Ctrl-C waits for the running jobs; a second Ctrl-C cancels them. Exit codes: 0 if the study is COMPLETED with a
    result, 1 if it is not or if an error occurs, 130 after Ctrl-C.
    """
    called = name or (
        _named(write_component.absolute().name) if write_component else _made_up_name(_named(script.stem))
    )
    # A job runs where it was submitted, as sbatch does it. An agent would not have that folder.
    described = script_component.describe(
        called,
        Path(SCRIPT),
        parameters=param,
        passed=pass_ or [],
        metrics=metric or [],
        timeout=timeout,
        folder=None if own_folder or write_component else Path.cwd(),
    )
    if write_component is not None:
        written = _write(write_component, described, script.read_bytes())
        try:
            script_trials.check(write_component / COMPONENT)
        except InvalidInput as error:
            raise _undone(error, written, write_component, script) from None
        if as_json:
            print_json({"written": [str(write_component / COMPONENT), str(write_component / SCRIPT)]})
        else:
            say(f"Written: {write_component / COMPONENT} and {write_component / SCRIPT}")
        return
    objectives = _objectives(described, minimize or [], maximize or [])
    required = [one.metric for one in objectives]
    if dry_run:
        with TemporaryDirectory() as temporary:
            text = _prepare(Path(temporary), described, script, slurm_option, required)[1]
        if as_json:
            print_json({"job": text})
        else:
            echo(text, nl=False)
        return
    place = (folder / called).absolute()
    with _alone(place, called):
        jobs, _ = _prepare(place, described, script, slurm_option, required)
        with trimtab.Client(client_id=_client_id(place)) as client:
            study = client.create_study(
                called,
                space=described.space,
                objectives=objectives,
                constraints=constraint or [],
                max_trials=trials,
                final_check=final_check,
                description=f"The batch script {script.name}.",
                load_if_exists=True,
            )
            say_start(study)
            say(f"Study {study.name}")
            _run(study, jobs, parallel)
            status = study.refresh()
            if status.reason:
                say(f"{status.state}: {status.reason}")
            if as_json:
                _print_json(study, jobs, script)
                return
            if not print_best(study) or status.state is not trimtab.StudyState.COMPLETED:
                raise typer.Exit(1)
            if len(objectives) == 1:
                say("To submit the script with these values:")
                echo(jobs.sbatch(study.best.render("json").params, script))


def _print_json(study: "Study", jobs: ScriptTrials, script: Path) -> None:
    """Print the study with its result; exit with 1 if it is not COMPLETED with one."""
    result = result_json(study)
    found = bool(result["best"])
    best = study.best.render("json").params if found and len(study.objectives) == 1 else None
    command = None if best is None else jobs.sbatch(best, script)
    print_json({**study_json(study), **result, "command": command})
    if not found or study.state is not trimtab.StudyState.COMPLETED:
        raise typer.Exit(1)


def _prepare(
    place: Path, described: ScriptComponent, script: Path, options: list[str] | None, required: list[str]
) -> tuple[ScriptTrials, str]:
    """Write the files of the jobs, and return what runs them, and what the job with the defaults would run."""
    written = _write(place, described, script.read_bytes())
    jobs = ScriptTrials(place / COMPONENT, place / "state", options or [], required)
    try:
        return jobs, jobs.show()
    except InvalidInput as error:
        raise _undone(error, written, place, script) from None


def _undone(error: InvalidInput, written: list[Path], place: Path, script: Path) -> InvalidInput:
    """Remove new files, because a corrected script may have the same name. Return the error about the user's script."""
    for path in written:
        path.unlink()
    return InvalidInput(error.code, error.message.replace(str((place / SCRIPT).absolute()), str(script)))


def _run(study: "Study", jobs: ScriptTrials, parallel: int) -> None:
    if study.state.finished:
        return
    # The reasons of failed jobs are in the trials. Tracebacks of this command would say nothing about them.
    logging.getLogger("trimtab").addFilter(_without_traceback)
    try:
        with _signals_as_exit():
            study.optimize(jobs.measure, parallel=parallel, catch=(JobFailed,))
    except KeyboardInterrupt:
        say("The study continues when you run the same command with --name " + study.name)
        raise typer.Exit(130) from None
    finally:
        jobs.stop()


def _without_traceback(record: logging.LogRecord) -> bool:
    record.exc_info = None
    return True


@contextmanager
def _signals_as_exit() -> Iterator[None]:
    """End as after an error when the terminal closes or the process is asked to end, so that no job stays behind."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    earlier = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _objectives(described: ScriptComponent, minimize: list[str], maximize: list[str]) -> "list[Objective]":
    if not minimize and not maximize:
        minimize = list(described.metrics[:1])
    for option, names in (("--minimize", minimize), ("--maximize", maximize)):
        for one in names:
            if one not in described.metrics:
                raise InvalidInput.of(option, one, f"one of the metrics {', '.join(described.metrics)}")
    return [*map(trimtab.Minimize, minimize), *map(trimtab.Maximize, maximize)]


@contextmanager
def _alone(place: Path, study: str) -> Iterator[None]:
    """Create the folder, and keep it from a second process.

    Raises:
        Conflict: another process works on the study.
        InvalidInput: the folder cannot be written.
    """
    try:
        place.mkdir(parents=True, exist_ok=True)
        lock = (place / "lock").open("w")
    except OSError as error:
        raise InvalidInput("unwritable_file", f"--folder {place} cannot be written: {error.strerror}.") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Conflict(
                "study_in_use",
                f"Another process works on study {study} in {place}. Wait for its end, or use another --name.",
            ) from None
        yield


def _write(place: Path, described: ScriptComponent, script: bytes) -> list[Path]:
    """Write the component, and a copy of the script, which may change while the study runs. Return the new files.

    Raises:
        Conflict: the folder belongs to another script or to other parameters.
        InvalidInput: the folder cannot be written.
    """
    new = []
    files = {place / SCRIPT: script, place / COMPONENT: described.text().encode()}
    try:
        place.mkdir(parents=True, exist_ok=True)
        for path, content in files.items():
            if path.exists() and path.read_bytes() != content:
                raise Conflict(
                    "script_changed",
                    f"{path} belongs to another version of the script or of its options, whose results do not compare"
                    f" with this one's. Use another --name, or delete {place}.",
                )
            if not path.exists():
                new.append(path)
            path.write_bytes(content)
    except OSError as error:
        raise InvalidInput("unwritable_file", f"{place} cannot be written: {error.strerror}.") from error
    return new


def _client_id(place: Path) -> str:
    """Return the same id at every start, so that the service gives open trials back."""
    path = place / "client"
    if not path.exists():
        path.write_text(f"sbatch-{uuid.uuid4().hex}")
    return path.read_text()


def _named(text: str) -> str:
    """Return a name that a component may have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:63] or "script"


def _made_up_name(stem: str) -> str:
    time = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    return f"{stem[: 63 - len(time) - 1]}-{time}"
