"""The kernels whose grids are measured: their search spaces and where their tables are.

Constraints leave a small part of each space, as in the tuning of compilers, GPU kernels and MPI programs: block sizes
divide the size of a matrix, radices have a given product, and processes form a grid.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from service.core.problem import Objective, Problem
from service.core.space import (
    BoolParameter,
    CategoricalParameter,
    Condition,
    Configuration,
    IntParameter,
    OrdinalParameter,
    Space,
)

SOURCES = Path(__file__).parent
DATA = SOURCES.parent / "data" / "kernels"
METRIC = "cpu_ms"
MOST_POINTS = 5_000
# Ranks of the stencil. They are more than the processors of most machines, so that ranks wait without using CPU time.
RANKS = 12
_ALGORITHMS = ("quick", "merge", "radix")
_CUTOFFS = (1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192)


@dataclass(frozen=True)
class Kernel:
    """A program, its search space, and its table: the CPU time of each configuration in each pass."""

    name: str
    space: Space

    @property
    def source(self) -> Path:
        """The C source of the program."""
        return SOURCES / f"{self.name}.c"

    @property
    def path(self) -> Path:
        """The table."""
        return DATA / f"{self.name}.csv.gz"

    @cached_property
    def problem(self) -> Problem:
        """The problem of a search in the table, where a configuration always has the same value."""
        return Problem.build(self.space, [Objective(METRIC, "minimize")], noisy=False)

    def configurations(self) -> list[Configuration]:
        """Return all feasible configurations."""
        found = self.space.enumerate(MOST_POINTS)
        assert found is not None, f"{self.name} has more than {MOST_POINTS} configurations"
        return found

    def arguments(self, configuration: Configuration) -> list[int]:
        """Return the line of integers that the program reads. Inactive parameters have the value 1."""
        line = []
        for parameter in self.space.parameters:
            value = configuration.get(parameter.name, 1)
            line.append(parameter.rank(value) if isinstance(value, str) else int(value))
        return line

    def text_key(self, configuration: Configuration) -> str:
        """Return the cells of the parameters in the table."""
        return ",".join(str(configuration.get(name, "")) for name in self.space.names())

    @cached_property
    def truth(self) -> dict[str, float]:
        """The least CPU time of each configuration by its `Space.key`: other programs only make a run slower."""
        runs = self.runs()
        return {self.space.key(one): min(runs[self.text_key(one)]) for one in self.configurations()}

    def runs(self) -> dict[str, list[float]]:
        """Return the CPU times of all passes by the cells of the parameters."""
        found: dict[str, list[float]] = {}
        with gzip.open(self.path, "rt", newline="") as file:
            for row in csv.DictReader(file):
                key = ",".join(row[name] for name in self.space.names())
                found.setdefault(key, []).append(float(row[METRIC]))
        return found

    def spread(self) -> float:
        """Return the median over the configurations of the coefficient of variation of their runs."""
        return float(np.median([np.std(runs, ddof=1) / np.mean(runs) for runs in self.runs().values()]))


def _matmul() -> Space:
    return Space.build(
        [
            IntParameter("bm", 1, 192),
            IntParameter("bn", 8, 192),
            IntParameter("bk", 1, 192),
            OrdinalParameter("unroll", (1, 4)),
            BoolParameter("pack"),
        ],
        [
            "192 % bm == 0",
            "192 % bn == 0",
            "bn % 8 == 0",
            "192 % bk == 0",
            "bm % unroll == 0",
            # The three blocks have at most 64 KiB.
            "bm * bk + bk * bn + bm * bn <= 8192",
        ],
    )


def _fft() -> Space:
    radices = [IntParameter(f"r{stage}", 1, 20) for stage in range(1, 5)]
    return Space.build(
        [*radices, BoolParameter("table"), BoolParameter("inner")],
        ["r1 * r2 * r3 * r4 == 1440"],
    )


def _sort() -> Space:
    def only(*algorithms: str) -> Condition:
        return Condition("algorithm", algorithms)

    return Space.build(
        [
            CategoricalParameter("algorithm", _ALGORITHMS),
            OrdinalParameter("cutoff", _CUTOFFS, condition=only("quick", "merge")),
            CategoricalParameter("small", (0, 1, 2), condition=only("quick", "merge")),
            CategoricalParameter("pivot", (0, 1, 2, 3), condition=only("quick")),
            CategoricalParameter("partition", (0, 1), condition=only("quick")),
            OrdinalParameter("ways", (2, 3, 4, 6, 8, 12, 16), condition=only("merge")),
            IntParameter("bits", 1, 16, condition=only("radix")),
            BoolParameter("skip", condition=only("radix")),
        ]
    )


def _stencil() -> Space:
    return Space.build(
        [
            *(IntParameter(name, 1, RANKS) for name in ("px", "py", "pz")),
            OrdinalParameter("depth", (1, 2, 3, 4)),
            BoolParameter("derived"),
            OrdinalParameter("block", (0, 2, 4, 8, 16, 32)),
        ],
        # A halo is not deeper than the part of a rank, and a block not larger.
        [f"px * py * pz == {RANKS}", "depth * pz <= 48", "depth * py <= 96", "depth * px <= 192", "block * py <= 96"],
    )


KERNELS: Sequence[Kernel] = (
    Kernel("matmul", _matmul()),
    Kernel("fft", _fft()),
    Kernel("sort", _sort()),
    Kernel("stencil", _stencil()),
)
