"""Repeated passes over the grid in random order, for tables of exhaustive measurements.

Each pass visits all configurations (or the same sample of them) in its own order. Replicates of one configuration are
therefore far apart in time, and a slow hour of the machine does not affect only neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost, no_feasible
from service.algorithms.designs.sequences import lattice_of
from service.core.errors import JsonValue
from service.core.lattice import Lattice
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

# After this many places in a row that break a constraint, the space counts as having no feasible point.
_MOST_MISSES = 10_000
_ROUNDS = 4


class ShuffledGrid(Algorithm):
    """`replicates` passes over the grid, or over `sample` configurations of it; without `replicates` they do not end.

    The cursor counts the places of the passes, including configurations that break a constraint. An ask with fixed
    values uses the places of a grid of its own.
    """

    cost = Cost.CHEAP
    uses_history = False

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        levels, replicates, sample = options["levels"], options["replicates"], options["sample"]
        assert isinstance(levels, int)
        assert replicates is None or isinstance(replicates, int)
        assert sample is None or isinstance(sample, int)
        self._levels, self._replicates, self._sample = levels, replicates, sample
        self._whole: tuple[Lattice, Sequence[int] | None] | None = None

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        lattice, chosen = self._part(fixed)
        size = lattice.size if chosen is None else len(chosen)
        found: list[Configuration] = []
        position, misses = cursor, 0
        while len(found) < count:
            number, place = divmod(position, size)
            if self._replicates is not None and number >= self._replicates:
                return Batch(tuple(found), position, True)
            index = shuffled(place, size, f"{self.seed} {number}")
            _, configuration = next(lattice.walk(index if chosen is None else chosen[index]))
            position += 1
            if configuration is not None:
                found.append(configuration)
                misses = 0
            else:
                misses += 1
                self._give_up(misses, lattice, fixed)
        return Batch(tuple(found), position, False)

    def _part(self, fixed: Mapping[str, Scalar]) -> tuple[Lattice, Sequence[int] | None]:
        """Return the grid with the fixed values, and the places of the sample in it."""
        if fixed:
            lattice = lattice_of(self.problem.space.restrict(fixed), self._levels)
            return lattice, self._draw(lattice, fixed)
        if self._whole is None:
            lattice = lattice_of(self.problem.space, self._levels)
            self._whole = lattice, self._draw(lattice, fixed)
        return self._whole

    def _draw(self, lattice: Lattice, fixed: Mapping[str, Scalar]) -> Sequence[int] | None:
        """Return the places of `sample` feasible configurations, or of all if there are no more."""
        if self._sample is None or self._sample >= lattice.size:
            return None
        drawn: list[int] = []
        misses = 0
        for place in range(lattice.size):
            index = shuffled(place, lattice.size, f"{self.seed} sample")
            if next(lattice.walk(index))[1] is None:
                misses += 1
                self._give_up(misses, lattice, fixed)
            else:
                drawn.append(index)
                misses = 0
            if len(drawn) == self._sample:
                break
        return drawn

    def _give_up(self, misses: int, lattice: Lattice, fixed: Mapping[str, Scalar]) -> None:
        """Raise InvalidInput if a whole pass, or very many places in a row, had no feasible configuration."""
        if misses >= min(_MOST_MISSES, lattice.size):
            raise no_feasible(self.problem.space, fixed, f"{misses} configurations in a row")


def shuffled(place: int, size: int, key: str) -> int:
    """Return the number at this place of a random order of 0, 1, ..., size - 1, without a list of them.

    A Feistel network over the next even number of bits is applied until its result is below `size` [black-2002].
    """
    half = max(((size - 1).bit_length() + 1) // 2, 1)
    mask = (1 << half) - 1
    number = place
    while True:
        left, right = number >> half, number & mask
        for turn in range(_ROUNDS):
            digest = hashlib.blake2b(f"{key} {turn} {right}".encode(), digest_size=(half + 7) // 8).digest()
            left, right = right, left ^ (int.from_bytes(digest, "big") & mask)
        number = left << half | right
        if number < size:
            return number
