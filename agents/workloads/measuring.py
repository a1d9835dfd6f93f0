"""What the workloads' measure.py share: a service and an agent in a folder, grids, studies, and runs in turns.

All that was measured is in that folder, so that the same command goes on where it was interrupted.
"""

import argparse
import csv
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import trimtab
from trimtab.cli.submission import create, load
from trimtab.errors import InvalidInput
from trimtab.study import Study

START_SECONDS = 120.0

Values = tuple[int, ...]
"""A configuration: values in the order of some parameters' names."""

screen = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
remarks = Console(stderr=True, highlight=False)


class BenchError(Exception):
    """A part did not start, or a run went wrong."""


def ends(work: Callable[[], None]) -> int:
    """Does the work; the program's status: 1 where something is wrong with the command line or what it needs."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts what runs in its background without the first
        signal.signal(number, signal.default_int_handler)
    try:
        work()
    except KeyboardInterrupt:
        remarks.print("Stopped; the same command goes on.")
        return 130
    except (trimtab.TrimtabError, BenchError) as error:
        remarks.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1
    return 0


def check_numbers(options: argparse.Namespace, **least: int) -> None:
    """Raises InvalidInput for an option that is below its least value; not every command has all of them."""
    for name, smallest in least.items():
        if getattr(options, name, smallest) < smallest:
            raise InvalidInput.of(f"--{name}", getattr(options, name), f"{smallest} or more")


def check_patterns(text: str, known: Sequence[str]) -> None:
    """Raises InvalidInput for a pattern in a list with commas that there is none of."""
    for name in text.split(","):
        if name not in known:
            raise InvalidInput.of("--patterns", name, ", ".join(known))


class Bench:
    """A service and an agent with a workload, in a folder, for the length of a `with`."""

    def __init__(self, workload: Path, folder: Path) -> None:
        self.workload, self.folder = workload, folder.absolute()
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Bench":
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            command = ["trimtab-service", "up", "--data-dir", str(self.folder / "data"), "--port", "0"]
            server = self._start("service", [*command, "--grpc-port", "0"], r"^ready console=\S+ grpc=(\S+)")
            token = self.folder / "data" / "admin-token"
            command = ["trimtab-agent", "run", "--server", server, "--token-file", str(token)]
            command += ["--components", str(self.workload), "--state-dir", str(self.folder / "agent")]
            self._start("agent", [*command, "--name", "bench"], r"^(ready) agent=")
            os.environ["TRIMTAB_URL"], os.environ["TRIMTAB_TOKEN"] = server, token.read_text().strip()
            self.client = trimtab.Client()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            process.terminate()
            process.wait()

    def explore(self, pattern: str, described: Mapping[str, Any], options: argparse.Namespace) -> tuple[Study, Path]:
        """A pattern's exhaustive grid, as a table, and its study with its final check, of what a study's file says."""
        file, grid = self.folder / f"{pattern}.yml", self.folder / f"{pattern}-grid.csv"
        own = {"application": pattern, "budget": {"max_trials": options.trials}}
        file.write_text(yaml.safe_dump({**described, **own, "final_check": {"max_trials": options.check}}))
        if not grid.exists():
            part = grid.with_suffix(".part")  # which is written when this is interrupted, too
            command = ["measure-grid", str(file), "--replicates", str(options.replicates), "--out", str(part)]
            done = subprocess.run([program("trimtab"), *command, "--name", f"{pattern}-grid"], check=False)
            if done.returncode:
                raise BenchError(f"the grid of {pattern} was not measured: measure-grid ended with {done.returncode}")
            part.rename(grid)
        study = create(self.client, load(self.client, file, pattern), name=pattern, load_if_exists=True)
        study.wait()
        if study.recommendation is None:
            raise BenchError(f"study {study.name} has found nothing: {study.status.reason}")
        return study, grid

    def in_turns(
        self,
        name: str,
        contenders: Sequence[Values | None],
        rounds: int,
        run: Callable[[Values | None], float],
    ) -> dict[Values | None, float]:
        """Median seconds of each configuration, all measured in each round, in another order. `NAME-turns.csv` has what
        was measured."""
        file = self.folder / f"{name}-turns.csv"
        known = {(row[0], row[1]): float(row[2]) for row in rows_of(file)}
        seconds = defaultdict(list)
        order = list(dict.fromkeys(contenders))
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        with (
            file.open("a", newline="") as to,
            Progress(*columns, console=remarks, disable=not remarks.is_terminal) as bar,
        ):
            task = bar.add_task(f"{name}: {len(order)} configurations in turns", total=rounds * len(order))
            for number in range(rounds):
                random.Random(number).shuffle(order)
                for values in order:
                    turn = str(number), " ".join(map(str, values)) if values else "off"
                    if turn not in known:
                        known[turn] = run(values)
                        csv.writer(to).writerow([*turn, known[turn]])
                        to.flush()
                    seconds[values].append(known[turn])
                    bar.advance(task)
        return {values: statistics.median(one) for values, one in seconds.items()}

    def _start(self, name: str, command: list[str], ready: str) -> str:
        log = self.folder / f"{name}.log"
        with log.open("wb") as to:
            process = subprocess.Popen([program(command[0]), *command[1:]], stdout=to, stderr=to)
        self._running.append(process)
        end = time.monotonic() + START_SECONDS
        while not (found := re.search(ready, log.read_text(errors="replace"), re.MULTILINE)):
            if process.poll() is not None or time.monotonic() > end:
                raise BenchError(f"the {name} did not start: see {log}")
            time.sleep(0.1)
        return found[1]


def rows_of(file: Path) -> list[list[str]]:
    """A table's whole rows; none of one that is not there."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return [row for row in csv.reader(lines) if len(row) == 3]


def program(name: str) -> str:
    """A command that is installed beside this Python."""
    return str(Path(sys.executable).parent / name)


def values_of(params: Mapping[str, object], names: Sequence[str]) -> Values:
    """A configuration from what a study or a table says."""
    return tuple(int(str(params[name])) for name in names)


def best_of(grid: Path, names: Sequence[str]) -> Values:
    """The configuration with the lowest median in a table."""
    seconds: dict[Values, list[float]] = defaultdict(list)
    with grid.open() as file:
        for row in csv.DictReader(file):
            seconds[values_of(row, names)].append(float(row["seconds"]))
    return min(seconds, key=lambda values: statistics.median(seconds[values]))


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Shows a table, and writes it as one of Markdown."""
    table = Table(*header, box=box.SIMPLE_HEAD)
    lines = [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    for row in rows:
        table.add_row(*map(str, row))
        lines.append(f"| {' | '.join(map(str, row))} |")
    screen.print(table)
    path.write_text("\n".join([*lines, ""]))
