"""Tools of the scripts measure.py: a service and an agent in a folder, grids, studies, and comparisons.

All results are in that folder, so that the same command goes on where it was interrupted.
"""

import argparse
import csv
import itertools
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from intervals import bootstrap
from rich import box
from rich.table import Table
from scripts import ScriptError, progress_bar, screen

import trimtab
from trimtab.cli.submission import create, load
from trimtab.study import Study

START_SECONDS = 120.0
INTERRUPTED = "Stopped; the same command goes on."
GOES_ON = """\
The same command goes on where it was interrupted, with the results in --folder. Tables are written there, too.
"""

Values = tuple[int, ...]
"""A configuration: values in the order of some parameters' names."""


def add_comparison(parser: argparse.ArgumentParser, patterns: Sequence[str], **defaults: int) -> None:
    """Add the options of a comparison of patterns, with these defaults."""
    helps = {
        "replicates": "of each point of the grid",
        "trials": "of each study",
        "check": "trials of its final check, at most",
        "rounds": "of the last comparison",
    }
    parser.add_argument("--patterns", default=",".join(patterns), help="a list with commas (default: %(default)s)")
    for name, text in helps.items():
        parser.add_argument(f"--{name}", type=int, default=defaults[name], help=f"{text} (default: %(default)s)")


def gaps(arrivals: str, seconds: float, seed: int = 0) -> Iterator[float]:
    """Yield the seconds between arrivals: always the same ("fixed"), or those of a Poisson process ("random")."""
    draws = random.Random(seed)
    while True:
        yield seconds if arrivals == "fixed" else draws.expovariate(1 / seconds)


class Bench:
    """A service and an agent with a workload, whose data is in a folder. They run while a `with` statement does."""

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
        """Measure the exhaustive grid of a pattern and run its study with the final check; return the study and grid.

        `described` is the content of a study file. The grid is the path of a table.
        """
        grid = self.grid(pattern, self._whole(pattern, described, options), options.replicates)
        return self.search(pattern, described, options), grid

    def search(self, pattern: str, described: Mapping[str, Any], options: argparse.Namespace) -> Study:
        """Run the study of a pattern with its final check, without a grid; return the study."""
        file = self.folder / f"{pattern}.yml"
        file.write_text(yaml.safe_dump(self._whole(pattern, described, options)))
        study = create(self.client, load(self.client, file, pattern), name=pattern, load_if_exists=True)
        study.wait()
        if study.recommendation is None:
            raise ScriptError(f"study {study.name} has found nothing: {study.status.reason}")
        return study

    def _whole(self, pattern: str, described: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
        """Return the content of a pattern's study file."""
        check = {"max_trials": options.check, "effects": 0}
        return {**described, "application": pattern, "budget": {"max_trials": options.trials}, "final_check": check}

    def grid(self, name: str, described: Mapping[str, Any], replicates: int) -> Path:
        """Measure the exhaustive grid of a study file with this content, unless it is known; return its table."""
        file, grid = self.folder / f"{name}.yml", self.folder / f"{name}-grid.csv"
        file.write_text(yaml.safe_dump(dict(described)))
        if not grid.exists():
            part = grid.with_suffix(".part")  # an interrupted command leaves it
            command = ["measure-grid", str(file), "--replicates", str(replicates), "--out", str(part)]
            done = subprocess.run([program("trimtab"), *command, "--name", f"{name}-grid"], check=False)
            if done.returncode:
                raise ScriptError(f"the grid of {name} was not measured: measure-grid ended with {done.returncode}")
            part.rename(grid)
        return grid

    def build(self) -> Path:
        """Return the folder of the agent's latest build; the first trial makes it."""
        builds = self.folder / "agent" / "builds"
        if not (found := [path for path in builds.glob("*") if path.is_dir()]):
            [name] = re.findall(r"^name: (\S+)$", (self.workload / "component.yaml").read_text(), re.MULTILINE)
            command = [program("trimtab-agent"), "try", name, "--components", str(self.workload)]
            done = subprocess.run(
                [*command, "--state-dir", str(self.folder / "agent")], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise ScriptError(f"the first trial failed:\n{done.stdout}{done.stderr}")
            found = [path for path in builds.glob("*") if path.is_dir()]
        return max(found, key=lambda path: path.stat().st_mtime)

    def command(self, application: str, work: Path) -> tuple[list[str], dict[str, str]]:
        """Return the command and environment by which an agent would run an application in the folder `work`."""
        component = yaml.safe_load((self.workload / "component.yaml").read_text())
        places = {"build": str(self.build()), "work": str(work), "component": str(self.workload), "flags": ""}
        described = component["applications"][application]
        written = {**component.get("env", {}), **described.get("env", {})}
        environment = {name: text.format(**places) for name, text in written.items()}
        if preload := component.get("preload"):
            environment["LD_PRELOAD"] = ":".join(item.format(**places) for item in preload)
        words = [item.format(**places) for item in described["command"] if item != "{flags}"]
        return words, {**os.environ, **environment}

    @contextmanager
    def disturbed(
        self, applications: Sequence[str], gaps: Iterator[float], seeded: Callable[[int], list[str]] = lambda seed: []
    ) -> Iterator[None]:
        """Start these applications again and again, with these seconds between two starts.

        `seeded` returns arguments for a seed, which differs from start to start.
        """
        over = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            disturbance = pool.submit(self._disturb, applications, gaps, seeded, over)
            try:
                yield
            finally:
                over.set()
            disturbance.result()

    def _disturb(
        self,
        applications: Sequence[str],
        gaps: Iterator[float],
        seeded: Callable[[int], list[str]],
        over: threading.Event,
    ) -> None:
        """Do what `disturbed` says until `over` is set. All programs have ended when this returns.

        If the previous ones still run at the time of an arrival, the next ones start when they have ended.
        """
        arrival = time.monotonic()
        seeds = itertools.count(1)
        while not over.is_set():
            running = []
            for place, application in enumerate(applications):
                work = self.folder / f"noise-{place}"
                shutil.rmtree(work, ignore_errors=True)
                (work / "target").mkdir(parents=True)
                command, environment = self.command(application, work)
                command[-1:-1] = seeded(next(seeds))
                running.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
            statuses = [process.wait() for process in running]
            if any(statuses):
                raise ScriptError(f"the noise ended with status {statuses}")
            arrival = max(arrival + next(gaps), time.monotonic())
            over.wait(arrival - time.monotonic())

    def in_turns(
        self,
        name: str,
        contenders: Sequence[Values | None],
        rounds: int,
        run: Callable[[Values | None], float],
    ) -> dict[Values | None, list[float]]:
        """Measure each configuration once in each round, in random order; return the seconds of the rounds.

        The file NAME-turns.csv keeps the measurements.
        """
        file = self.folder / f"{name}-turns.csv"
        known = {(row[0], row[1]): float(row[2]) for row in rows_of(file)}
        seconds = defaultdict(list)
        order = list(dict.fromkeys(contenders))
        with file.open("a", newline="") as to, progress_bar() as bar:
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
        return dict(seconds)

    def compare(
        self,
        study: Study,
        names: Sequence[str],
        others: Sequence[Values | None],
        best: Values,
        rounds: int,
        run: Callable[[Values | None], float],
        defaults: int = 1,
    ) -> tuple[list[str], Values]:
        """Measure `others`, the last of which are defaults, the best of a study and the best of its grid in turns.

        Return the cells of a table: the study's name, the median seconds of each, the gain over each default with its
        interval, and the verdict; and the configuration that the study has found.
        """
        assert study.recommendation is not None
        found = values_of(study.recommendation.params, names)
        contenders = [*others, found, best]
        seconds = self.in_turns(study.name, contenders, rounds, run)
        times = [f"{statistics.median(seconds[values]):.2f} s" for values in contenders]
        gains = [gain(seconds[values], seconds[found]) for values in others[len(others) - defaults :]]
        verdict = study.verdict.text if study.verdict else "none"
        return [study.name, *times, *gains, verdict], found

    def _start(self, name: str, command: list[str], ready: str) -> str:
        log = self.folder / f"{name}.log"
        with log.open("wb") as to:
            process = subprocess.Popen([program(command[0]), *command[1:]], stdout=to, stderr=to)
        self._running.append(process)
        end = time.monotonic() + START_SECONDS
        while not (found := re.search(ready, log.read_text(errors="replace"), re.MULTILINE)):
            if process.poll() is not None or time.monotonic() > end:
                raise ScriptError(f"the {name} did not start: see {log}")
            time.sleep(0.1)
        return found[1]


def gain(baseline: Sequence[float], other: Sequence[float]) -> str:
    """Return by how much the other's median is lower, with a 95 % interval, from rounds of both in turns."""
    low, high = bootstrap(_lower, baseline, other)
    return f"{100 * _lower(baseline, other):.0f} % ({100 * low:.0f} to {100 * high:.0f})"


def _lower(baseline: Sequence[float], other: Sequence[float]) -> float:
    return 1 - statistics.median(other) / statistics.median(baseline)


def rows_of(file: Path) -> list[list[str]]:
    """Return the complete rows of a table; none if there is no such file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return [row for row in csv.reader(lines) if len(row) == 3]


def program(name: str) -> str:
    """Return the path of a command that is installed next to this Python."""
    return str(Path(sys.executable).parent / name)


def values_of(params: Mapping[str, object], names: Sequence[str]) -> Values:
    """Return the configuration with these parameters of a study or a row of a table."""
    return tuple(int(str(params[name])) for name in names)


def best_of(grid: Path, names: Sequence[str]) -> Values:
    """Return the configuration with the lowest median in a table."""
    seconds: dict[Values, list[float]] = defaultdict(list)
    with grid.open() as file:
        for row in csv.DictReader(file):
            seconds[values_of(row, names)].append(float(row["seconds"]))
    return min(seconds, key=lambda values: statistics.median(seconds[values]))


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table, and write it as Markdown."""
    table = Table(*header, box=box.SIMPLE_HEAD)
    lines = [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    for row in rows:
        table.add_row(*map(str, row))
        lines.append(f"| {' | '.join(map(str, row))} |")
    screen.print(table)
    path.write_text("\n".join([*lines, ""]))
