"""The command `trimtab-service replay`: it reads and checks the whole request, then runs and reports."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from service.core.errors import InvalidInput, JsonValue
from service.policies import stopping
from service.replay import bench, measured_table, report, simulators
from service.replay.replay_record import Run
from service.replay.run import Terms, contestants
from service.replay.subject import Subject

MOST_SEEDS = 10_000
_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".pq")


@dataclass(frozen=True, kw_only=True)
class Request:
    """The command's arguments as texts. `columns` are the arguments that apply only to a table."""

    subject: str
    columns: measured_table.Selection
    noise: str | None = None
    algorithms: Sequence[str] = ("auto",)
    resampling: Sequence[str] = ("default",)
    seeds: str = "0-29"
    budget: int = 100
    start: int = 10
    stopping: str | None = None
    options: Sequence[str] = field(default_factory=tuple)
    jobs: int = 1
    out: Path = Path("replay")


def run(request: Request, console: Console) -> int:
    """Execute the runs that the folder lacks, write and print the report, and return the exit code.

    Raises:
        TrimtabError: the request is not allowed; nothing has run.
        RuntimeError: a run failed.
    """
    plan = plan_of(request)
    store = bench.Store.open(request.out, plan)
    known = len(store.of(plan))
    if known:
        console.print(f"{known} of {len(plan)} runs are in {request.out} already.", style="dim")
    interrupted = False
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("replay", total=len(plan), completed=known)

        def each(made: Run) -> None:
            progress.update(task, advance=1, description=f"{made.contestant}, seed {made.seed}")

        try:
            bench.make(plan, store, request.jobs, each)
            progress.update(task, description="replay")
        except KeyboardInterrupt:
            interrupted = True
    made = store.of(plan)
    if interrupted:
        console.print(f"Stopped: {len(made)} of {len(plan)} runs are kept. The same command continues with the others.")
        return 130
    publish(plan, made, request.out, console)
    return 0


def publish(plan: bench.Plan, runs: Sequence[Run], folder: Path, console: Console) -> None:
    """Write summary, trajectories and plots of these runs, and print the summary."""
    summaries = report.summarize(plan.subject, runs)
    report.write_summary(folder / "summary.csv", plan.subject, summaries)
    curves = {
        one: report.curves(plan.subject, [run for run in runs if run.contestant == one], plan.terms.budget)
        for one in plan.contestants
    }
    report.write_trajectories(folder / "trajectories.csv", curves)
    console.print(report.table(plan.subject, summaries, console.width))
    try:
        from service.replay import plots
    except ImportError:
        console.print("No plots: matplotlib is not installed. pip install 'trimtab-service[plots]'")
    else:
        plots.draw(folder, plan.subject, curves, summaries)
    console.print(f"Everything is in {folder}", highlight=False)


def plan_of(request: Request) -> bench.Plan:
    """Return the checked plan. Raises InvalidInput with the option, its value and the allowed values."""
    subject = _subject(request)
    terms = Terms(
        budget=_whole("budget", request.budget, 1, 100_000),
        start=_whole("start", request.start, 1, request.budget),
        stopping=_stopping(request.stopping, subject),
        options=_options(request.options),
    )
    _whole("jobs", request.jobs, 1, 1024)
    return bench.Plan(
        subject=subject,
        terms=terms,
        contestants=contestants(subject, request.algorithms, request.resampling, terms),
        seeds=_seeds(request.seeds),
    )


def _subject(request: Request) -> Subject:
    path = Path(request.subject)
    if path.name.lower().endswith(_SUFFIXES):
        if request.noise is not None:
            raise InvalidInput("noise", request.noise, "no --noise with a table, which has its own noise")
        return measured_table.load(path, request.columns)
    if request.subject not in simulators.names():
        allowed = f"a file that ends in {', '.join(_SUFFIXES)}, or one of {', '.join(simulators.names())}"
        raise InvalidInput("subject", request.subject, allowed)
    given = request.columns
    only_tables: Mapping[str, object] = {
        "parameters": given.parameters,
        "metric": given.metrics,
        "categorical": given.categorical,
        "conditional": given.conditional,
        "where": given.where,
        "seconds": given.seconds,
        "default": given.default,
        "maximize": given.maximize,
    }
    for option, value in only_tables.items():
        if value:
            allowed = f"no --{option} with a simulator, which has its own parameters and metrics"
            shown = ", ".join(value) if isinstance(value, list | tuple) else str(value)
            raise InvalidInput(option, shown, allowed)
    return simulators.create(request.subject, request.noise)


def _stopping(text: str | None, subject: Subject) -> JsonValue:
    """Return the rule's checked JSON."""
    if text is None:
        return None
    try:
        data = json.loads(text)
    except ValueError:
        raise InvalidInput("stopping", text, 'JSON such as {"rule": "trials", "trials": 50}') from None
    return stopping.parse(data, subject.problem).to_json()


def _options(texts: Sequence[str]) -> dict[str, dict[str, JsonValue]]:
    """Return the options of NAME.KEY=VALUE texts; a value is JSON or a text."""
    found: dict[str, dict[str, JsonValue]] = {}
    for text in texts:
        name, dot, rest = text.partition(".")
        key, equals, value = rest.partition("=")
        if not (name and dot and key and equals):
            raise InvalidInput("option", text, "NAME.KEY=VALUE, such as gp.threads=2")
        options = found.setdefault(name, {})
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return found


def _seeds(text: str) -> list[int]:
    """Return the seeds of `0-29`, `1,4,7` or a mixture of both forms."""
    seeds: dict[int, None] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,18})(?:\s*-\s*(\d{1,18}))?\s*", part)
        if match is None:
            raise InvalidInput("seeds", text, "numbers and ranges, such as 0-29 or 1,4,7")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MOST_SEEDS:
            raise InvalidInput("seeds", part, f"a range of 1 to {MOST_SEEDS} seeds")
        seeds.update(dict.fromkeys(range(first, last + 1)))
    return list(seeds)


def _whole(name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise InvalidInput(name, value, f"an integer from {least} to {most}")
    return value
