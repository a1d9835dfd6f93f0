"""Measures what tuning the burst buffer is worth, on this machine, with a service and an agent of its own.

For each pattern: the exhaustive grid of study.yml, a study with its final check, and then the default, the best that
the study has found and the best of the grid in turns.
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
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from rich.console import Console

import trimtab
from trimtab.cli import study_file
from trimtab.cli.submission import create
from trimtab.errors import InvalidInput
from trimtab.study import Study

WORKLOAD = Path(__file__).resolve().parent
COMPONENT = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
STUDY = yaml.safe_load((WORKLOAD / "study.yml").read_text())
PARAMETERS = tuple(STUDY["only"])
PATTERNS = tuple(COMPONENT["applications"])
START_SECONDS = 120.0
HEADER = (
    "pattern",
    "default",
    "best found",
    "best of the grid",
    "less than default",
    "final check",
    "found",
    "of the grid",
)
EXAMPLE = """\
examples:
  python agents/workloads/burst-buffer/measure.py
  python agents/workloads/burst-buffer/measure.py --patterns checkpoint --trials 30 --replicates 2

The same command again goes on where it was interrupted, with what is in --folder. The table is written there, too.
"""

Values = tuple[int, ...]
"""A configuration: values in the order of PARAMETERS."""

screen = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
remarks = Console(stderr=True, highlight=False)


class BenchError(Exception):
    """A part did not start, or a run went wrong."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; 1 where something is wrong with it or with what it needs."""
    options = arguments(argv)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts what runs in its background without the first
        signal.signal(number, signal.default_int_handler)
    try:
        check(options)
        with Bench(options.folder.absolute()) as bench:
            rows = []
            for pattern in options.patterns.split(","):
                rows.append(measured(bench, pattern, options))
                write(bench.folder / "patterns.md", rows)
    except KeyboardInterrupt:
        remarks.print("Stopped; the same command goes on.")
        return 130
    except (trimtab.TrimtabError, BenchError) as error:
        remarks.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1
    return 0


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--patterns", default=",".join(PATTERNS), help="a list with commas (default: %(default)s)")
    parser.add_argument("--replicates", type=int, default=1, help="of each point of the grid (default: %(default)s)")
    parser.add_argument("--trials", type=int, default=20, help="of each study (default: %(default)s)")
    parser.add_argument(
        "--check", type=int, default=16, help="trials of its final check, at most (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="of the last comparison (default: %(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("burst-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def check(options: argparse.Namespace) -> None:
    """Raises InvalidInput for what makes no sense."""
    for name, least in {"replicates": 1, "trials": 1, "check": 8, "rounds": 1}.items():
        if getattr(options, name) < least:
            raise InvalidInput.of(f"--{name}", getattr(options, name), f"{least} or more")
    for name in options.patterns.split(","):
        if name not in PATTERNS:
            raise InvalidInput.of("--patterns", name, ", ".join(PATTERNS))


class Bench:
    """A service and an agent with this workload, in a folder, for the length of a `with`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Bench":
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            command = ["trimtab-service", "up", "--data-dir", str(self.folder / "data"), "--port", "0"]
            server = self._start("service", [*command, "--grpc-port", "0"], r"^ready console=\S+ grpc=(\S+)")
            token = self.folder / "data" / "admin-token"
            command = ["trimtab-agent", "run", "--server", server, "--token-file", str(token)]
            command += ["--components", str(WORKLOAD), "--state-dir", str(self.folder / "agent"), "--name", "bench"]
            self._start("agent", command, r"^(ready) agent=")
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

    def run(self, pattern: str, values: Values) -> float:
        """The seconds of one run, now, as the agent runs it."""
        command = [program("trimtab-agent"), "try", "burst-buffer", "--components", str(WORKLOAD)]
        command += ["--state-dir", str(self.folder / "tries"), "--application", pattern]
        for name, value in zip(PARAMETERS, values, strict=True):
            command += ["--set", f"{name}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"^metric seconds = (\S+)", done.stdout, re.MULTILINE)
        if not found:
            raise BenchError(f"a run of {pattern} went wrong:\n{done.stdout}{done.stderr}")
        return float(found[1])

    def in_turns(self, pattern: str, contenders: Sequence[Values], rounds: int) -> dict[Values, float]:
        """Median seconds of each configuration, all measured in each round, in another order."""
        seconds = defaultdict(list)
        order = list(dict.fromkeys(contenders))
        for number in range(rounds):
            random.Random(number).shuffle(order)
            for values in order:
                remarks.print(f"{pattern}: round {number + 1} of {rounds}, {values}")
                seconds[values].append(self.run(pattern, values))
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


def program(name: str) -> str:
    """A command that is installed beside this Python."""
    return str(Path(sys.executable).parent / name)


def values_of(params: Mapping[str, object]) -> Values:
    """A configuration from what a study or a table says."""
    return tuple(int(str(params[name])) for name in PARAMETERS)


def measured(bench: Bench, pattern: str, options: argparse.Namespace) -> list[str]:
    """A pattern's row of the table."""
    file, grid = bench.folder / f"{pattern}.yml", bench.folder / f"{pattern}-grid.csv"
    own = {"application": pattern, "budget": {"max_trials": options.trials}}
    file.write_text(yaml.safe_dump({**STUDY, **own, "final_check": {"max_trials": options.check}}))
    if not grid.exists():
        command = ["measure-grid", str(file), "--replicates", str(options.replicates), "--out", str(grid)]
        subprocess.run([program("trimtab"), *command, "--name", f"{pattern}-grid"], check=True)
    study = create(bench.client, study_file.load(file), name=pattern, load_if_exists=True)
    study.wait()
    return compared(bench, pattern, study, grid, options.rounds)


def compared(bench: Bench, pattern: str, study: Study, grid: Path, rounds: int) -> list[str]:
    """Everything in turns."""
    recommended = study.recommendation
    if recommended is None:
        raise BenchError(f"study {study.name} has found nothing: {study.status.reason}")
    default = tuple(COMPONENT["parameters"][name]["default"] for name in PARAMETERS)
    found, best = values_of(recommended.params), best_of(grid)
    seconds = bench.in_turns(pattern, [default, found, best], rounds)
    gain = 1 - seconds[found] / seconds[default]
    times = [f"{seconds[values]:.2f} s" for values in (default, found, best)]
    verdict = study.verdict.text if study.verdict else "none"
    shown = [", ".join(map(str, values)) for values in (found, best)]
    return [pattern, *times, f"{100 * gain:.0f} %", verdict, *shown]


def best_of(grid: Path) -> Values:
    """The configuration with the lowest median in a table."""
    seconds: dict[Values, list[float]] = defaultdict(list)
    with grid.open() as file:
        for row in csv.DictReader(file):
            seconds[values_of(row)].append(float(row["seconds"]))
    return min(seconds, key=lambda values: statistics.median(seconds[values]))


def write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Writes and shows a table, as one of Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (HEADER, ["---"] * len(HEADER), *rows)]
    path.write_text("\n".join([*lines, ""]))
    screen.print(path.read_text(), markup=False)


if __name__ == "__main__":
    sys.exit(main())
