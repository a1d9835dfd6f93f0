"""What is replayed: a problem on a grid, what each of its configurations is worth, and how a run of it comes out."""

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
    """One run's metrics, [m] in the problem's order and units, and how long it ran, where that is known."""

    values: FloatArray
    seconds: float | None


class Answers(Protocol):
    """How a run of one configuration comes out."""

    def measure(self, row: int, clock: float, rng: np.random.Generator, seed: int) -> Measurement:
        """One run of the configuration `row` that starts `clock` seconds after the search began.

        `rng` is this run's own. `seed` is the search's, for what all of its runs share.
        """


@dataclass(frozen=True, eq=False)
class Subject:
    """A problem that is known completely.

    The configurations of the grid are numbered with the last parameter running fastest (`grid_number`); `rows` gives
    those that exist their row in `truth`, None meaning that all do, in that order.
    `truth`: [rows, m], what each is worth without noise, in the metrics' own units. `default`: [m], the same for what
    the system does untuned, where that is known; it need not be on the grid.
    """

    name: str
    problem: Problem
    truth: FloatArray
    answers: Answers
    rows: Mapping[int, int] | None = None
    default: FloatArray | None = None

    def row(self, configuration: Configuration) -> int | None:
        """The configuration's row; None for one that does not exist, which a run finds INFEASIBLE."""
        number = grid_number(self.problem.space, configuration)
        return number if self.rows is None else self.rows.get(number)

    def measure(self, row: int, *, clock: float, seed: int, visit: int) -> Measurement:
        """The search's `visit`-th run of a configuration. The same arguments give the same answer.

        So two algorithms with one seed that measure the same configuration see the same luck.
        """
        rng = np.random.default_rng((seed % 2**64, row, visit))
        return self.answers.measure(row, clock, rng, seed)

    @cached_property
    def losses(self) -> FloatArray:
        """[rows, m]: the truth with smaller being better in every column."""
        return self.truth * self.problem.signs()

    @cached_property
    def optimum(self) -> float:
        """The first objective's least loss."""
        return float(self.losses[:, 0].min())

    @cached_property
    def front(self) -> NDArray[np.intp]:
        """The rows that nothing dominates."""
        return np.flatnonzero(non_dominated(self.losses))

    def distances(self) -> FloatArray:
        """[rows]: how far the first objective is from its optimum, relative to the optimum's size."""
        scale = abs(self.optimum) or 1.0
        return (self.losses[:, 0] - self.optimum) / scale


def grid_number(space: Space, configuration: Configuration) -> int:
    """The configuration's place in the grid of a space whose parameters have finitely many values."""
    number = 0
    for parameter in space.parameters:
        size = parameter.size()
        assert size is not None, "a subject's parameters have finitely many values"
        # an inactive parameter has a place of its own beside its values
        rank = parameter.rank(configuration[parameter.name]) if parameter.name in configuration else size
        number = number * (size + (parameter.condition is not None)) + rank
    return number
