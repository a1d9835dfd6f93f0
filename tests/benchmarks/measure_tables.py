"""Measure tables of real workloads with a service and an agent of their own.

Each table is measured by `trimtab measure-grid`: whole, several times, in random order. The same command goes on where
it was interrupted. The tables with noise are measured while other applications of the workload run.
"""

import argparse
import gzip
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from pathlib import Path

WORKLOADS = Path(__file__).parents[2] / "agents" / "workloads"
sys.path.append(str(WORKLOADS))

# Both are in the folder of the workloads, which is no package.
from measuring import Bench, gaps  # type: ignore[import-not-found]  # noqa: E402
from scripts import check_names, exit_status, parser_of, screen  # type: ignore[import-untyped]  # noqa: E402

from tests.benchmarks.tables import TABLES, Table  # noqa: E402

EXAMPLE = """\
examples:
  python -m tests.benchmarks.measure_tables
  python -m tests.benchmarks.measure_tables sro-1,hotspots
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if an argument is wrong or a table was not measured."""
    options = arguments(argv)

    def work() -> None:
        names = check_names("TABLES", options.tables, list(TABLES), ", ".join(TABLES))
        for component, group in groupby((TABLES[name] for name in names), lambda one: one.component):
            folder = options.folder / component
            workload = quiet(WORKLOADS / component, folder.absolute() / "workload")
            with Bench(workload, folder) as bench:
                for one in group:
                    measure(bench, one)

    return int(exit_status(work, "Stopped; the same command goes on."))


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser: argparse.ArgumentParser = parser_of(__doc__, EXAMPLE)
    parser.add_argument("tables", nargs="?", default=",".join(TABLES), help="a list with commas (default: all)")
    parser.add_argument("--folder", type=Path, default=Path("tables-measured"), help="default: %(default)s")
    return parser.parse_args(argv)


def quiet(workload: Path, copy: Path) -> Path:
    """Make a copy of a workload without injected contention, and return it."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(workload, copy)
    described = copy / "component.yaml"
    described.write_text(re.sub(r'--contention, "\d+",', "", described.read_text()))
    return copy


def measure(bench: Bench, one: Table) -> None:
    """Measure a table, unless it is known, and write it to the tables of the benchmarks."""
    if one.arrivals is None:
        grid = bench.grid(one.name, one.study(), one.replicates)
    else:
        with noise_of(bench, one):
            grid = bench.grid(one.name, one.study(), one.replicates)
    with grid.open("rb") as file, one.path.open("wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as to:
        shutil.copyfileobj(file, to)
    screen.print(f"{one.name}: {one.path}")


def noise_of(bench: Bench, one: Table) -> AbstractContextManager[None]:
    """Start the other applications of a table with noise again and again, until the context ends."""
    assert one.arrivals is not None
    seeded = (lambda seed: ["-s", str(seed)]) if one.component == "small-read-optimizer" else (lambda seed: [])
    noise: AbstractContextManager[None] = bench.disturbed(one.noise, gaps(one.arrivals, one.noise_seconds), seeded)
    return noise


if __name__ == "__main__":
    sys.exit(main())
