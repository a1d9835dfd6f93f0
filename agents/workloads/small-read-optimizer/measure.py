"""Measures what tuning the small read optimizer is worth, on this machine, with a service and an agent of its own.

patterns: for each I/O pattern the exhaustive grid, a study with its final check, and then default, best found and best
of the grid in turns. noise: chapter 5 of the thesis; studies with each resampling policy while other programs read and
write the same file at three rates of arrival; what they recommend is measured again without noise.
"""

import argparse
import csv
import itertools
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import trimtab
from trimtab.cli import study_file
from trimtab.cli.submission import create
from trimtab.errors import InvalidInput
from trimtab.space import Scalar
from trimtab.study import Study

WORKLOAD = Path(__file__).resolve().parent
COMPONENT = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
PARAMETERS = tuple(COMPONENT["parameters"])
PATTERNS = ("columns", "sro-1", "sro-2", "sro-3", "hotspots")
NOISE = ("noise-write", "noise-write", "noise-read")
# The application of the noisy experiment: a variation of the thesis' own (5.5.1).
NOISY = "hotspots"
POLICIES: Mapping[str, trimtab.Policy] = {
    "none": trimtab.Policy("none"),
    "static": trimtab.Policy("static", n=3),
    "sedr": trimtab.Policy("sedr", threshold=0.1),
    "thesis": trimtab.Policy("thesis"),
    "adaptive": trimtab.Policy("adaptive"),
}
START_SECONDS = 120.0
EXAMPLE = """\
examples:
  python agents/workloads/small-read-optimizer/measure.py patterns
  python agents/workloads/small-read-optimizer/measure.py noise --repetitions 2 --trials 25

The same command again goes on where it was interrupted, with what is in --folder. Tables are written there, too.
"""

Values = tuple[Scalar, ...]
"""A configuration: values in the order of PARAMETERS."""

screen = Console(highlight=False, width=None if sys.stdout.isatty() else 140)
remarks = Console(stderr=True, highlight=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; 1 where something is wrong with it or with what it needs."""
    options = arguments(argv)
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell starts what runs in its background without the first
        signal.signal(number, signal.default_int_handler)
    try:
        check_numbers(options)
        with Bench(options.folder.absolute()) as bench:
            (patterns if options.what == "patterns" else noise)(bench, options)
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
    kinds = parser.add_subparsers(dest="what", required=True)
    one = kinds.add_parser("patterns", help="default, best found and best of the exhaustive grid of each pattern")
    one.add_argument("--patterns", default=",".join(PATTERNS), help="a list with commas (default: %(default)s)")
    one.add_argument("--replicates", type=int, default=2, help="of each point of the grid (default: %(default)s)")
    one.add_argument("--trials", type=int, default=40, help="of each study (default: %(default)s)")
    one.add_argument("--check", type=int, default=20, help="trials of its final check, at most (default: %(default)s)")
    one.add_argument("--rounds", type=int, default=9, help="of the last comparison (default: %(default)s)")
    two = kinds.add_parser("noise", help="the resampling policies under concurrent noise")
    two.add_argument("--runs", default="0.5,4,10", help="runs of the default between arrivals (default: %(default)s)")
    two.add_argument("--repetitions", type=int, default=5, help="studies of each kind (default: %(default)s)")
    two.add_argument("--trials", type=int, default=40, help="of each study (default: %(default)s)")
    two.add_argument("--rounds", type=int, default=5, help="runs of what is recommended (default: %(default)s)")
    for parts in (one, two):
        parts.add_argument("--folder", type=Path, default=Path("sro-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def check_numbers(options: argparse.Namespace) -> None:
    """Raises InvalidInput for a number that makes no sense."""
    least = {"replicates": 1, "trials": 1, "check": 8, "rounds": 1, "repetitions": 1}
    for name, smallest in least.items():
        if getattr(options, name, smallest) < smallest:
            raise InvalidInput.of(f"--{name}", getattr(options, name), f"{smallest} or more")
    for name in getattr(options, "patterns", PATTERNS[0]).split(","):
        if name not in PATTERNS:
            raise InvalidInput.of("--patterns", name, ", ".join(PATTERNS))
    for text in getattr(options, "runs", "1").split(","):
        try:
            fine = float(text) > 0
        except ValueError:
            fine = False
        if not fine:
            raise InvalidInput.of("--runs", text, "numbers above 0")


# --- what everything runs on


class BenchError(Exception):
    """A part did not start, or a run went wrong."""


class Bench:
    """A service and an agent with this workload, in a folder, for the length of a `with`; and runs without them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> "Bench":
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            command = ["trimtab-service", "up", "--data-dir", str(self.folder / "data"), "--port", "0"]
            self.server = self._start("service", [*command, "--grpc-port", "0"], r"^ready console=\S+ grpc=(\S+)")
            token = self.folder / "data" / "admin-token"
            command = ["trimtab-agent", "run", "--server", self.server, "--token-file", str(token)]
            command += ["--components", str(WORKLOAD), "--state-dir", str(self.folder / "agent"), "--name", "bench"]
            self._start("agent", command, r"^(ready) agent=")
            os.environ["TRIMTAB_URL"], os.environ["TRIMTAB_TOKEN"] = self.server, token.read_text().strip()
            self.client = trimtab.Client()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            process.terminate()
            process.wait()

    def build(self) -> Path:
        """The agent's build, which all its trials use; the file that they read is in it."""
        if not (found := list((self.folder / "agent" / "builds").glob("*/files/data"))):
            command = [program("trimtab-agent"), "try", "small-read-optimizer", "--components", str(WORKLOAD)]
            done = subprocess.run(
                [*command, "--state-dir", str(self.folder / "agent")], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise BenchError(f"a first trial went wrong:\n{done.stdout}{done.stderr}")
            found = list((self.folder / "agent" / "builds").glob("*/files/data"))
        return max(found, key=lambda path: path.stat().st_mtime).parents[1]

    def command(self, application: str, work: Path) -> tuple[list[str], dict[str, str]]:
        """The command and environment of an application, as an agent would run it in the folder `work`."""
        places = {"build": str(self.build()), "work": str(work), "component": str(WORKLOAD)}
        described = COMPONENT["applications"][application]
        written = {**COMPONENT["env"], **described.get("env", {})}
        environment = {name: text.format(**places) for name, text in written.items()}
        environment["LD_PRELOAD"] = ":".join(item.format(**places) for item in COMPONENT["preload"])
        return [item.format(**places) for item in described["command"]], {**os.environ, **environment}

    def run(self, application: str, values: Values | None) -> float:
        """The seconds of one run, now; None: with the optimizer switched off."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        command, environment = self.command(application, work)
        chosen = {"SRO_ENABLE": "0"} if values is None else dict(zip(PARAMETERS, map(str, values), strict=True))
        (self.build() / "files" / "data").read_bytes()  # into memory, as the component's header does
        done = subprocess.run(command, env={**environment, **chosen}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"{application} ended with status {done.returncode}: {done.stderr}")
        return float(json.loads(done.stdout)["seconds"])

    def in_turns(
        self, application: str, contenders: Sequence[Values | None], rounds: int
    ) -> dict[Values | None, float]:
        """Median seconds of each configuration, all measured in each round, in another order."""
        measured = defaultdict(list)
        order = list(dict.fromkeys(contenders))
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        with Progress(*columns, console=remarks, disable=not remarks.is_terminal) as bar:
            task = bar.add_task(f"{application}: {len(order)} configurations in turns", total=rounds * len(order))
            for number in range(rounds):
                random.Random(number).shuffle(order)
                for values in order:
                    measured[values].append(self.run(application, values))
                    bar.advance(task)
        return {values: statistics.median(seconds) for values, seconds in measured.items()}

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


def default() -> Values:
    """The untuned configuration."""
    return tuple(COMPONENT["parameters"][name]["default"] for name in PARAMETERS)


def shown(values: Values) -> str:
    """A configuration as the tables write it: window, bin, threshold, prefetch."""
    length, binsize, threshold, prefetch = (int(str(value)) for value in values)
    return f"{length}, {size(binsize)}, {threshold}, {size(prefetch)}"


def size(number: int) -> str:
    """Bytes, by the greatest unit that they are a whole number of."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number % unit == 0:
            return f"{number // unit} {name}"
    return f"{number / (1 << 20):.0f} MiB"


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Shows a table, and writes it as one of Markdown."""
    table = Table(*header, box=box.SIMPLE_HEAD)
    lines = [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    for row in rows:
        table.add_row(*map(str, row))
        lines.append(f"| {' | '.join(map(str, row))} |")
    screen.print(table)
    path.write_text("\n".join([*lines, ""]))


# --- patterns


def patterns(bench: Bench, options: argparse.Namespace) -> None:
    """The table of section 2.2.3, measured."""
    described = yaml.safe_load((WORKLOAD / "study.yml").read_text())
    rows = []
    for pattern in options.patterns.split(","):
        file = bench.folder / f"{pattern}.yml"
        described |= {"application": pattern, "budget": {"max_trials": options.trials}}
        described |= {"final_check": {"max_trials": options.check}}
        file.write_text(yaml.safe_dump(described))
        grid = bench.folder / f"{pattern}-grid.csv"
        if not grid.exists():
            command = ["measure-grid", str(file), "--replicates", str(options.replicates), "--out", str(grid)]
            subprocess.run([program("trimtab"), *command, "--name", f"{pattern}-grid"], check=True)
        study = create(bench.client, study_file.load(file), name=pattern, load_if_exists=True)
        study.wait()
        rows.append(compared(bench, pattern, study, grid, options.rounds))
        header = ["pattern", "off", "default", "best found", "best of the grid", "less than default", "final check"]
        write(bench.folder / "patterns.md", [*header, "found", "of the grid"], rows)


def compared(bench: Bench, pattern: str, study: Study, grid: Path, rounds: int) -> list[str]:
    """A pattern's row of the table: everything in turns."""
    best = best_of(grid)
    recommended = study.recommendation
    if recommended is None:
        raise BenchError(f"study {study.name} has found nothing: {study.status.reason}")
    found = values_of(recommended.params)
    seconds = bench.in_turns(pattern, [None, default(), found, best], rounds)
    gain = 1 - seconds[found] / seconds[default()]
    times = [f"{seconds[values]:.2f} s" for values in (None, default(), found, best)]
    verdict = study.verdict.text if study.verdict else "none"
    return [pattern, *times, f"{100 * gain:.0f} %", verdict, shown(found), shown(best)]


def best_of(grid: Path) -> Values:
    """The configuration with the lowest median in a table."""
    measured: dict[Values, list[float]] = defaultdict(list)
    with grid.open() as file:
        for row in csv.DictReader(file):
            measured[values_of(row)].append(float(row["seconds"]))
    return min(measured, key=lambda values: statistics.median(measured[values]))


# --- noise


def noise(bench: Bench, options: argparse.Namespace) -> None:
    """The comparison of chapter 5, measured. Repetitions are the outermost loop, so that time disturbs all alike."""
    spaces = [float(text) for text in options.runs.split(",")]
    run_seconds = statistics.median(bench.run(NOISY, default()) for _ in range(options.rounds))
    screen.print(f"{NOISY} with the defaults, without noise: {run_seconds:.2f} s")
    described = study_file.load(WORKLOAD / "study.yml")
    described = replace(described, algorithm="gp", max_trials=options.trials, final_check=None, application=NOISY)
    studies: dict[tuple[float, str], list[Study]] = defaultdict(list)
    for repetition in range(options.repetitions):
        for space in spaces:
            with disturbed(bench, space * run_seconds):
                for policy, resampling in POLICIES.items():
                    wanted = replace(described, resampling=resampling, seed=repetition)
                    name = f"noise-{space:g}-{policy}-{repetition}"
                    study = create(bench.client, wanted, name=name, load_if_exists=True)
                    study.wait()
                    studies[space, policy].append(study)
    found = {study.name: study.recommendation for group in studies.values() for study in group}
    recommended = {name: values_of(one.params) for name, one in found.items() if one is not None}
    seconds = bench.in_turns(NOISY, [default(), *recommended.values()], options.rounds)
    least = min(seconds.values())
    rows = []
    for (space, policy), group in studies.items():
        times = [seconds[recommended.get(study.name, default())] for study in group]
        counts = [Counter(values_of(trial.params) for trial in study.trials()) for study in group]
        durations = [sum(trial.seconds or 0.0 for trial in study.trials()) for study in group]
        rows.append(
            [
                f"{space:g} ({space * run_seconds:.1f} s)",
                policy,
                f"{100 * (statistics.fmean(times) / least - 1):.1f} %",
                f"{100 * (max(times) / least - 1):.1f} %",
                f"{100 * (1 - statistics.fmean(times) / seconds[default()]):.1f} %",
                f"{statistics.fmean(durations):.0f} s",
                f"{statistics.fmean(map(len, counts)):.1f}",
                f"{statistics.fmean(sum(n > 2 for n in count.values()) for count in counts):.1f}",
            ]
        )
    rows.sort(key=lambda row: spaces.index(float(row[0].split()[0])))
    header = ["runs between arrivals", "policy", "from the best", "worst of them", "less than default"]
    write(bench.folder / "noise.md", [*header, "duration", "configurations", "measured 3 times or more"], rows)


@contextmanager
def disturbed(bench: Bench, interval: float) -> Iterator[None]:
    """Two writers and a reader come every `interval` seconds, unless those before are still there."""
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        disturbance = pool.submit(disturb, bench, interval, over)
        try:
            yield
        finally:
            over.set()
        disturbance.result()


def disturb(bench: Bench, interval: float, over: threading.Event) -> None:
    """Until `over`: as `disturbed`. All programs have ended when it returns."""
    arrival = time.monotonic()
    seeds = itertools.count(1)
    while not over.is_set():
        running = []
        for place, application in enumerate(NOISE):
            work = bench.folder / f"noise-{place}"
            work.mkdir(exist_ok=True)
            command, environment = bench.command(application, work)
            command[-1:-1] = ["-s", str(next(seeds))]
            running.append(subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL))
        statuses = [process.wait() for process in running]
        if any(statuses):
            raise BenchError(f"the noise ended with status {statuses}")
        arrival = max(arrival + interval, time.monotonic())
        over.wait(arrival - time.monotonic())


if __name__ == "__main__":
    sys.exit(main())
