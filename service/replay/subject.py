"""The subject of a replay: a problem on a grid, the true values of its configurations, and a model of their runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from service.core.encoding import FloatArray
from service.core.pareto import non_dominated
from service.core.problem import Problem
from service.core.space import Configuration, Space


@dataclass(frozen=True, slots=True)
class Measurement:
    """One run's metrics, [m] in the problem's order and units, and its running time, if known."""

    values: FloatArray
    seconds: float | None


class Answers(Protocol):
    """A model of the runs of configurations."""

    def measure(self, row: int, clock: float, rng: np.random.Generator, seed: int) -> Measurement:
        """Return one run of the configuration `row` that starts `clock` seconds after the start of the search.

        `rng` belongs to this run. `seed` belongs to the search and serves for the common properties of its runs.
        """


@dataclass(frozen=True, eq=False)
class Subject:
    """A problem with known true values.

    The configurations of the grid are numbered with the last parameter varying fastest (`grid_number`). `rows` gives
    the existing ones their row in `truth`; None means that all exist, in that order. `truth`: [rows, m] values without
    noise, in the metrics' own units. `default`: [m], the values of the untuned system, if known; it need not be on the
    grid.
    """

    name: str
    problem: Problem
    truth: FloatArray
    answers: Answers
    rows: Mapping[int, int] | None = None
    default: FloatArray | None = None

    def row(self, configuration: Configuration) -> int | None:
        """Return the configuration's row; None if it does not exist, so that its run is INFEASIBLE."""
        number = grid_number(self.problem.space, configuration)
        return number if self.rows is None else self.rows.get(number)

    def measure(self, row: int, *, clock: float, seed: int, visit: int) -> Measurement:
        """Return the search's `visit`-th run of a configuration. The same arguments give the same result.

        Two algorithms with one seed that measure the same configuration therefore get the same noise.
        """
        rng = np.random.default_rng((seed % 2**64, row, visit))
        return self.answers.measure(row, clock, rng, seed)

    @cached_property
    def losses(self) -> FloatArray:
        """The true values, [rows, m], with signs such that smaller is better in every column."""
        return self.truth * self.problem.signs()

    @cached_property
    def optimum(self) -> float:
        """The first objective's least loss."""
        return float(self.losses[:, 0].min())

    @cached_property
    def front(self) -> NDArray[np.intp]:
        """The rows that no row dominates."""
        return np.flatnonzero(non_dominated(self.losses))

    def distances(self) -> FloatArray:
        """Return the distances, [rows], of the first objective from its optimum, relative to the optimum's size."""
        scale = abs(self.optimum) or 1.0
        return (self.losses[:, 0] - self.optimum) / scale


def grid_number(space: Space, configuration: Configuration) -> int:
    """Return the configuration's place in the grid of a space whose parameters have finitely many values."""
    number = 0
    for parameter in space.parameters:
        size = parameter.size()
        assert size is not None, "a subject's parameters have finitely many values"
        # An inactive parameter has a place in addition to its values.
        rank = parameter.rank(configuration[parameter.name]) if parameter.name in configuration else size
        number = number * (size + (parameter.condition is not None)) + rank
    return number
