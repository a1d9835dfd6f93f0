"""Repeated passes over the grid in random order, for tables of exhaustive measurements.

Each pass visits all configurations (or the same sample of them) in its own order. Replicates of one configuration are
therefore far apart in time, and a slow hour of the machine does not affect only neighbours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.designs.sequences import GridPoints, too_sparse
from service.core.errors import JsonValue
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

# After this many places in a row that break a constraint, the space counts as having no feasible point.
_MOST_MISSES = 10_000
_SPARSE = 100
_ROUNDS = 4


class ShuffledGrid(Algorithm):
    """`replicates` passes over the grid, or over `sample` configurations of it; without `replicates` they do not end.

    A study without noise and without `replicates` measures each configuration once, and none that was measured before.
    The cursor counts the places of the passes. If less than one point of the grid in a hundred is feasible, the places
    are those of the list of feasible points, otherwise those of the whole grid. An ask with fixed values uses the
    places of a grid of its own.
    """

    cost = Cost.CHEAP
    uses_history = False

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        levels, replicates, sample = options["levels"], options["replicates"], options["sample"]
        assert isinstance(levels, int)
        assert replicates is None or isinstance(replicates, int)
        assert sample is None or isinstance(sample, int)
        self._levels, self._sample = levels, sample
        self._whole: tuple[GridPoints, Sequence[int] | None] | None = None
        # Without noise, another pass says nothing.
        self._once = replicates is None and not problem.noisy
        self._passes = 1 if self._once else replicates
        # The keys of what was measured, also before this sequence.
        self._measured: set[str] = set()

    def update(self, finished: Sequence[TrialRecord]) -> None:
        if self._once:
            self._measured |= {self.problem.space.key(trial.configuration) for trial in finished}

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        grid, chosen = self._part(fixed)
        size = _size(grid) if chosen is None else len(chosen)
        found: list[Configuration] = []
        position, misses = cursor, 0
        key = self.problem.space.key
        known = self._measured | {key(trial.configuration) for trial in pending} if self._once else set()
        while len(found) < count:
            number, place = divmod(position, size)
            if self._passes is not None and number >= self._passes:
                return Batch(tuple(found), position, True)
            index = shuffled(place, size, f"{self.seed} {number}")
            configuration = _at(grid, index if chosen is None else chosen[index])
            position += 1
            if configuration is not None:
                if key(configuration) not in known:
                    found.append(configuration)
                misses = 0
            else:
                misses += 1
                self._give_up(misses, grid)
        return Batch(tuple(found), position, False)

    def _part(self, fixed: Mapping[str, Scalar]) -> tuple[GridPoints, Sequence[int] | None]:
        """Return the grid with the fixed values, and the places of the sample in it."""
        if fixed:
            grid = GridPoints(self.problem.space, fixed, self._levels)
            return grid, self._draw(grid)
        if self._whole is None:
            grid = GridPoints(self.problem.space, fixed, self._levels)
            self._whole = grid, self._draw(grid)
        return self._whole

    def _draw(self, grid: GridPoints) -> Sequence[int] | None:
        """Return the places of `sample` feasible configurations, or of all if there are no more."""
        size = _size(grid)
        if self._sample is None or self._sample >= size:
            return None
        drawn: list[int] = []
        misses = 0
        for place in range(size):
            index = shuffled(place, size, f"{self.seed} sample")
            if _at(grid, index) is None:
                misses += 1
                self._give_up(misses, grid)
            else:
                drawn.append(index)
                misses = 0
            if len(drawn) == self._sample:
                break
        return drawn

    def _give_up(self, misses: int, grid: GridPoints) -> None:
        """Raise InvalidInput if a whole pass, or very many places in a row, had no feasible configuration."""
        if misses >= min(_MOST_MISSES, _size(grid)):
            raise too_sparse(self.problem.space, f"none of {misses} points in a row is feasible")


def _is_sparse(grid: GridPoints) -> bool:
    return grid.listed is not None and _SPARSE * len(grid.listed) < grid.lattice.size


def _size(grid: GridPoints) -> int:
    """Return the number of places of a pass."""
    return len(grid.listed) if grid.listed is not None and _is_sparse(grid) else grid.lattice.size


def _at(grid: GridPoints, place: int) -> Configuration | None:
    """Return the configuration at a place; None if it breaks a constraint."""
    if grid.listed is not None and _is_sparse(grid):
        return dict(grid.listed[place])
    return next(grid.lattice.walk(place))[1]


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
