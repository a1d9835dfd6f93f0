"""Compare layouts on this machine in turns: the linker's order, random, gprof, PH, C3, lld, BOLT, and huge pages.

Each round profiles the target once; all layouts of the round come from that profile, and the held-out profile of
prepare.py judges their locality. Then each layout runs once, in random order, unless only `--locality` is wanted. The
first rounds also simulate a first-level instruction cache. The results are in --folder: the same command goes on where
it was interrupted, and `--rounds 0` only prints the tables.
"""

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path += [str(FOLDER), str(FOLDER.parent)]

import heldout  # noqa: E402
from build import ALGORITHMS, placed  # noqa: E402
from graph import CallGraph, Stack, Symbols, graph_of  # noqa: E402
from intervals import ratio_of  # noqa: E402
from linking import Linked  # noqa: E402
from locality import locality  # noqa: E402
from ordering import PAGE  # noqa: E402
from peers import bolted  # noqa: E402
from run import huge_variables, measure, simulate  # noqa: E402
from sampling import profiled  # noqa: E402
from serving import MachineError, ServerError  # noqa: E402
from targets import TARGETS, Target  # noqa: E402

BOLT = "bolt"
# C3 with larger clusters, up to 1 MiB as in lld; the published threshold is a page
LARGE = {"c3-64k": 64 << 10, "c3-1m": 1 << 20}
PLAIN = (*ALGORITHMS, *LARGE, BOLT)
LAYOUTS = [
    *((name, "none") for name in PLAIN),
    ("default", "all"),
    ("gprof", "hot"),
    ("ph", "hot"),
    ("c3", "hot"),
    *((name, "hot") for name in LARGE),
]
PERIOD = 200
COLUMNS = ("round", "target", "layout", "huge", "metric", "value")
LOCALITY = ("calls_64b", "calls_4k", "calls_2m", "call_distance", "hot_pages")
# calls within 4 KiB of the profile that made the layout, which flatters it
OWN = "own_calls_4k"
EXAMPLE = """\
examples:
  python3 measure.py --targets httpd --rounds 6
  python3 measure.py --targets httpd,postgres --rounds 10 --count-rounds 3
"""

Row = tuple[int, str, str, str, str, float]


class Results:
    """Measured values in a file, to which each is added at once."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows: list[Row] = []
        if file.exists():
            with file.open(newline="") as lines:
                for row in list(csv.reader(lines))[1:]:
                    self.rows.append((int(row[0]), row[1], row[2], row[3], row[4], float(row[5])))
        else:
            file.write_text(",".join(COLUMNS) + "\n")

    def add(self, number: int, target: str, layout: str, huge: str, values: dict[str, float]) -> None:
        """Add the values of one layout in one round."""
        with self.file.open("a", newline="") as to:
            for metric, value in values.items():
                self.rows.append((number, target, layout, huge, metric, value))
                csv.writer(to).writerow(self.rows[-1])

    def of(self, target: str, layout: str, huge: str, metric: str) -> dict[int, float]:
        """Return the value of each round."""
        wanted = (target, layout, huge, metric)
        return {row[0]: row[5] for row in self.rows if row[1:5] == wanted}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if something is missing or fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--targets", default="httpd", help="a list with commas of httpd, postgres (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=6, help="default: %(default)s")
    parser.add_argument(
        "--count-rounds", type=int, default=2, help="rounds that simulate a cache (default: %(default)s)"
    )
    parser.add_argument("--locality", action="store_true", help="only profile and link: no runs of the layouts")
    parser.add_argument(
        "--period-us", type=int, default=PERIOD, help="processor time between samples (default: %(default)s)"
    )
    parser.add_argument("--requests", type=int, help="of a run (default: as in a trial)")
    parser.add_argument("--folder", type=Path, default=Path("placement-measured"), help="default: %(default)s")
    options = parser.parse_args(argv)
    names = options.targets.split(",")
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"--targets: {unknown[0]!r} is not allowed. Use {', '.join(TARGETS)}")
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.resolve()
    results = Results(folder / "measured.csv")
    try:
        for number in range(options.rounds):
            for name in names:
                one_round(number, TARGETS[name], folder, results, options)
    except (MachineError, ServerError, OSError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name in names:
        print(table(name, results))
    return 0


def one_round(number: int, target: Target, folder: Path, results: Results, options: argparse.Namespace) -> None:
    """Profile a target, and measure all layouts of this profile, without what is known already."""
    counted = number < options.count_rounds and not options.locality
    wanted = "calls_4k" if options.locality else "cpu_us_per_request"
    waiting = [
        (layout, huge)
        for layout, huge in LAYOUTS
        if not (options.locality and (layout == BOLT or huge != "none"))
        if number not in results.of(target.name, layout, huge, wanted)
        or (counted and huge == "none" and number not in results.of(target.name, layout, huge, "i1_misses"))
    ]
    if not waiting:
        return
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        place.chmod(0o755)
        library = place / "hugetext.so"
        shared = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread"]
        subprocess.run(["gcc", *shared, "-o", library, FOLDER / "src" / "hugetext.c"], check=True)
        stacks, before = profiled(target, place / target.name, options.period_us, "gold")
        judge, own = heldout.read(target), graph_of(stacks, before.symbols)
        # BOLT estimates calls and moves hot functions to a section of their own, which is for runs
        plain = [layout for layout in PLAIN if not (options.locality and layout == BOLT)]
        programs = {layout: linked(layout, target, place, stacks, before, judge) for layout in plain}
        for layout, program in programs.items():
            if number not in results.of(target.name, layout, "none", "calls_4k"):
                address = Symbols.of(program).address
                figures = locality(judge, address) | {OWN: locality(own, address)["calls_4k"]}
                results.add(number, target.name, layout, "none", figures)
        if options.locality:
            return
        random.Random(number).shuffle(waiting)
        for layout, huge in waiting:
            placement = json.loads((place / target.name / f"{layout}.json").read_text()) if huge != "none" else {}
            env = huge_variables(place, placement.get("hot", ["0", "0"]), huge)
            with working_in(place / "work"):
                if number not in results.of(target.name, layout, huge, "cpu_us_per_request"):
                    values = measure(target, programs[layout], env, options.requests)
                    results.add(number, target.name, layout, huge, values)
                if counted and huge == "none" and number not in results.of(target.name, layout, huge, "i1_misses"):
                    results.add(number, target.name, layout, huge, simulate(target, programs[layout]))
            print(f"round {number} {target.name} {layout} {huge}", file=sys.stderr, flush=True)


def linked(layout: str, target: Target, place: Path, stacks: Sequence[Stack], before: Linked, judge: CallGraph) -> Path:
    """Link a target in a layout; return the program."""
    folder = place / target.name
    to = folder / "bin" / f"{target.program}-{layout}-placed"
    if layout == BOLT:
        bolted(before.program, before.symbols, stacks, to)
        return to
    algorithm = "c3" if layout in LARGE else layout
    threshold = LARGE.get(layout, PAGE)
    options = argparse.Namespace(
        algorithm=algorithm, threshold=threshold, min_share=0.0, period_us=PERIOD, linker="gold"
    )
    placed(target, folder, stacks, before, options, judge)
    (folder / "bin" / target.program).rename(to)
    (folder / "placement.json").rename(folder / f"{layout}.json")
    return to


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Work in a folder for a while."""
    folder.mkdir(exist_ok=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


def table(target: str, results: Results) -> str:
    """Return the table of a target as Markdown: means of the locality, and ratios to the linker's order."""
    names = ("layout", "huge", *LOCALITY, OWN, "I1 misses", "processor time", "verdict")
    lines = [f"| {target}: {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    for layout, huge in LAYOUTS:
        if not any(row[1:4] == (target, layout, huge) for row in results.rows):
            continue
        cells = []
        for metric in (*LOCALITY, OWN):
            values = results.of(target, layout, "none", metric)
            cells.append(f"{statistics.fmean(values.values()):,.4g}" if values else "")
        cells.append(compared(results, target, layout, huge, "i1_misses")[0])
        ratio, verdict = compared(results, target, layout, huge, "cpu_us_per_request")
        lines.append(f"| {layout} | {huge} | {' | '.join([*cells, ratio, verdict])} |")
    rounds = len({row[0] for row in results.rows if row[1] == target})
    lines += ["", f"{rounds} rounds; ratios of medians to `default`, `none` with 95 % intervals.", ""]
    lines += [f"| {target}: ratio to ph | {' | '.join(LOCALITY)} |", f"|{' --- |' * (1 + len(LOCALITY))}"]
    for layout in ("c3", *LARGE, "lld", "gprof"):
        cells = [compared(results, target, layout, "none", metric, "ph")[0] for metric in LOCALITY]
        lines.append(f"| {layout} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def compared(
    results: Results, target: str, layout: str, huge: str, metric: str, to: str = "default"
) -> tuple[str, str]:
    """Return the ratio of a metric to that of another layout as text, and the verdict."""
    own, base = results.of(target, layout, huge, metric), results.of(target, to, "none", metric)
    both = sorted(own.keys() & base.keys())
    if (layout, huge) == (to, "none"):
        return "1", ""
    # no ratio to nothing
    if len(both) < 2 or not all(base[at] for at in both):
        return "", ""
    ratio = ratio_of([own[at] for at in both], [base[at] for at in both])
    enough = len(both) >= 6  # with fewer rounds no interval of a bootstrap is honest
    if not enough or not ratio.proven:
        return str(ratio), "no measurable gain" if enough else f"{len(both)} rounds only"
    return str(ratio), "less" if ratio.high < 1 else "more"


if __name__ == "__main__":
    sys.exit(main())
