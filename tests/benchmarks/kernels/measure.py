"""Measure the grids of the kernels: each configuration in three passes, each pass in another random order.

    python -m tests.benchmarks.kernels.measure [KERNEL ...]

needs gcc, and for `stencil` Open MPI. A row of a table is one run with the CPU time that the program itself reports.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.kernels.spaces import DATA, KERNELS, METRIC, RANKS, Kernel

PASSES = 3
FLAGS = ("-O3", "-march=native", "-Wall", "-Wextra", "-std=gnu11")
_MPI = (
    *("mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"),
    *("--mca", "btl", "self,vader", "-n", str(RANKS)),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the given kernels, or all."""
    names = [one.name for one in KERNELS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", choices=[*names, []], help="default: all")
    chosen = parser.parse_args(argv).kernels or names
    DATA.mkdir(exist_ok=True)
    for one in KERNELS:
        if one.name in chosen:
            measure(one)
            print(f"{one.name}: {len(one.configurations())} configurations, one run differs by {one.spread():.1%}")
    return 0


def measure(kernel: Kernel) -> None:
    """Measure one kernel and write its table."""
    configurations = kernel.configurations()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        command = build(kernel, Path(folder))
        for number in range(1, PASSES + 1):
            order = random.Random(number).sample(configurations, len(configurations))
            lines = "".join(" ".join(map(str, kernel.arguments(one))) + "\n" for one in order)
            answer = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True)
            times = answer.stdout.split()
            assert len(times) == len(order), f"{kernel.name} has answered {len(times)} of {len(order)} configurations"
            rows += [
                [*(one.get(name, "") for name in kernel.space.names()), time, number]
                for one, time in zip(order, times, strict=True)
            ]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*kernel.space.names(), METRIC, "pass"])
    writer.writerows(rows)
    with kernel.path.open("wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as file:
        file.write(text.getvalue().encode())


def build(kernel: Kernel, folder: Path) -> list[str]:
    """Compile a kernel into the folder, and return the command that runs it."""
    program = folder / kernel.name
    compiler = "mpicc" if kernel.name == "stencil" else "gcc"
    subprocess.run([compiler, *FLAGS, str(kernel.source), "-lm", "-o", str(program)], check=True)
    return [*(_MPI if kernel.name == "stencil" else ()), str(program)]


if __name__ == "__main__":
    sys.exit(main())
