"""`trimtab-agent try`: run one trial without a service, for authors of component files."""

import asyncio
import json
import shutil
import signal
import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from trimtab_agent.config import Prometheus
from trimtab_agent.errors import ConfigError, NotAcceptedError, SchedulerAwayError
from trimtab_agent.preparation import prepare
from trimtab_agent.runners.base import LOG, JobResult, JobSpec, Json, Outcome, Runner
from trimtab_agent.runners.local import LocalRunner
from trimtab_components import arguments
from trimtab_components.errors import NotInComponentError, UnsuitableValueError
from trimtab_components.schema import Component, Scalar, as_text
from trimtab_components.terminal import write

# Seconds to wait for a scheduler that does not answer. A running agent waits without limit.
PATIENCE = 30.0

# The most lines of a rendered file that are printed.
MOST_LINES = 200

Answer = TypeVar("Answer")


def parse_settings(component: Component, settings: Sequence[str]) -> dict[str, Scalar]:
    """Parse values of the form NAME=VALUE.

    Raises:
        ConfigError: an item has another form.
        NotInComponentError: there is no parameter of this name.
        UnsuitableValueError: the parameter does not allow this value.
    """
    values = {}
    for item in settings:
        name, separator, text = item.partition("=")
        if not separator:
            raise ConfigError(f"--set {item!r} is not of the form NAME=VALUE")
        if name not in component.parameters:
            raise NotInComponentError(
                f"component {component.name!r} has no parameter {name!r}; it has {', '.join(component.parameters)}"
            )
        values[name] = arguments.parse_value(component.parameters[name], text)
    return values


def try_once(
    component: Component,
    application: str,
    settings: Sequence[str],
    metrics: Sequence[str],
    state: Path,
    cache_limit: int,
    runner: Runner,
    prometheus: Prometheus,
    *,
    dry: bool = False,
    as_json: bool = False,
    keep: Path | None = None,
) -> bool:
    """Run one trial, print its result, and return whether it was completed with all required metrics.

    `metrics` are the required metrics; without any, one metric of the component is enough, because an application need
    not report all of them. `dry` only prints what would run. `as_json` prints nothing but one JSON object at the end,
    for programs. `keep` is a new folder for what the trial leaves.

    Raises:
        AgentError: the component has no such application or value, or (SchedulerAwayError) the scheduler did not answer
            for PATIENCE seconds.
    """
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise ConfigError(f"--keep {keep} exists already. Name a new folder, or an empty one")
    given = parse_settings(component, settings)
    place = state / "tries"  # on the file system that the nodes of a cluster share
    for made in (state, place):
        made.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="try-", dir=place))
    try:
        (folder / "work").mkdir()
        spec = prepare(
            component,
            application,
            given,
            title=component.name,
            required=list(metrics),
            timeout=0,
            work=folder / "work",
            cache=state / "builds",
            cache_limit=cache_limit,
            prometheus=prometheus,
        )
        if not as_json:
            _print_spec(component, spec, used=not isinstance(runner, LocalRunner))
            _print_templates(component, folder / "work")
        if dry:
            return True
        result = asyncio.run(_run(folder, spec, runner))
        if as_json:
            write(json.dumps(_as_json(result)))
        else:
            _print_result(component, folder, spec, result)
        return result.outcome is Outcome.COMPLETED and bool(result.metrics)
    finally:
        if keep is not None:
            shutil.copytree(folder, keep, symlinks=True, dirs_exist_ok=True, copy_function=_copy)
            if not as_json:
                write(f"kept: {keep}")
        shutil.rmtree(folder, ignore_errors=True)


def _copy(source: str, target: str) -> None:
    """Copy a regular file. Pipes and sockets of the trial have no content to keep."""
    if Path(source).is_file():
        shutil.copy2(source, target)


async def _run(folder: Path, spec: JobSpec, runner: Runner) -> JobResult:
    try:
        await _answered(runner.submit(folder, spec), runner)
    except UnsuitableValueError as error:
        return JobResult(Outcome.INFEASIBLE, str(error))
    except (NotAcceptedError, OSError) as error:
        return JobResult(Outcome.FAILED, str(error))
    tasks: set[asyncio.Task[None]] = set()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(
            number, lambda: tasks.add(asyncio.ensure_future(runner.cancel(folder)))
        )
    try:
        return await _answered(runner.wait(folder), runner)
    except SchedulerAwayError:
        # The job reads this mark when it can.
        await runner.cancel(folder)
        raise
    finally:
        runner.close()


async def _answered(work: Coroutine[object, object, Answer], runner: Runner) -> Answer:
    """Return the result of `work`. Raises SchedulerAwayError if the scheduler does not answer for PATIENCE s."""
    task = asyncio.ensure_future(work)
    while not (await asyncio.wait([task], timeout=1.0))[0]:
        seconds, reported = runner.silence()
        if seconds >= PATIENCE:
            task.cancel()
            await asyncio.wait([task])
            raise SchedulerAwayError(f"given up after {seconds:.0f} s: {reported}")
    return task.result()


def _print_spec(component: Component, spec: JobSpec, *, used: bool) -> None:
    for name, value in spec.params.items():
        parameter = component.parameters[name]
        notes = [f"unit {parameter.unit}"] if parameter.unit else []
        if parameter.text(value) != as_text(value):
            notes.append(f"written {parameter.text(value) or 'as an empty text'}")
        if value != parameter.default:
            notes.append(f"default {as_text(parameter.default)}")
        write(f"{name} = {as_text(value)}" + (f"   ({', '.join(notes)})" if notes else ""))
    for kind, commands in (
        ("build", spec.build.commands if spec.build else ()),
        ("header", spec.header),
        ("command", [spec.command]),
    ):
        for argv in commands:
            write(f"{kind}: {list(argv)}")
    changed = {name: value for name, value in spec.env.items() if spec.base_env.get(name) != value}
    for name, value in changed.items():
        write(f"env: {name}={value}")
    for option in (*spec.scheduler_options, *spec.directives):
        write(f"scheduler{'' if used else ' (not used here)'}: {option}")


def _print_templates(component: Component, work: Path) -> None:
    for template in component.templates:
        text = (work / template.target).read_text(encoding="utf-8")
        lines = text.splitlines()
        more = len(lines) - MOST_LINES
        write(f"file: {template.target}")
        for line in lines[:MOST_LINES]:
            write(f"  | {line}")
        if more > 0:
            write(f"  | ... {more} more lines; --keep DIR leaves the whole file")


def _as_json(result: JobResult) -> dict[str, object]:
    return {
        "outcome": result.outcome,
        "reason": result.reason,
        "metrics": dict(result.metrics),
        "missing": dict(result.missing),
        "elapsed": result.elapsed,
        "node": result.node,
        "doubt": result.doubt,
        "interference": result.interference,
    }


def _interference(measured: Mapping[str, Json]) -> str:
    parts = [
        f"took {100 * measured['share']:.0f} % of the CPUs" if "share" in measured else "",
        f"the run waited {100 * measured['wait']:.0f} % of its time" if "wait" in measured else "",
    ]
    return "; ".join(filter(None, parts)) or "cannot be measured here"


def _print_result(component: Component, folder: Path, spec: JobSpec, result: JobResult) -> None:
    if spec.build:
        write("build: from the cache" if result.build_seconds is None else f"build: {result.build_seconds:.3f} s")
    if result.outcome is not Outcome.COMPLETED and (folder / LOG).exists():
        write((folder / LOG).read_text(encoding="utf-8", errors="replace").rstrip())
    if result.outcome is not Outcome.COMPLETED:
        write(f"reason: {result.reason}")
    write(f"outcome: {result.outcome}" + (f" after {result.elapsed:.3f} s" if result.elapsed else ""))
    if result.interference is not None:
        write(f"other processes: {_interference(result.interference)}")
    if result.doubt:
        write(f"warning: the timing is doubtful: {result.doubt}")
    for name, value in result.metrics.items():
        write(f"metric {name} = {value:.9g}")
    for name in component.metrics:
        if result.outcome is Outcome.COMPLETED and name not in result.metrics:
            write(f"metric {name}: no value: {result.missing.get(name, 'the runs do not all have it')}")
