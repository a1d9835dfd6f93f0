"""Designs of experiments that do not learn from results.

`random`, `sobol` and `lhs` are sequences of points of the unit cube. The point at a position depends only on the seed,
so the cursor is the only state, and an ask costs the same at any position. Positions whose configuration breaks a
constraint are skipped.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

import numpy as np

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost, no_feasible
from service.core.encoding import Encoding, FloatArray
from service.core.errors import JsonValue
from service.core.lattice import Lattice
from service.core.parameters import FloatParameter, OrdinalParameter, Parameter, Scalar
from service.core.problem import Problem
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord

# After this many positions in a row that break a constraint, a continuous space counts as having no feasible point, and
# a finite one is searched in order.
_MOST_MISSES = 10_000
_MOST_MISSES_FINITE = 1_000
# Such a search starts at this many random indices and finally at the beginning. All of its steps together take a
# fraction of a second, because it may run within a request.
_SEARCHES = 8
_MOST_STEPS = 5_000
# The most steps to the next point of a grid, which take well below a second.
_MOST_GRID_STEPS = 100_000
_LARGEST_CHUNK = 256
_REMEMBERED_PARTS = 16

_Fixed: TypeAlias = tuple[tuple[str, str, Scalar], ...]


class _Sequence(Algorithm):
    """An algorithm that is a sequence of points."""

    cost = Cost.CHEAP
    uses_history = False

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        self._encoding_of = lru_cache(_REMEMBERED_PARTS)(self._make_encoding)
        self._dimension = len(problem.space.parameters)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        encoding = self._encoding_of(_as_key(fixed))
        most_misses = _MOST_MISSES if encoding.space.lattice is None else _MOST_MISSES_FINITE
        found: list[Configuration] = []
        position, misses = cursor, 0
        while len(found) < count:
            chunk = min(max(count - len(found), 2 * misses), _LARGEST_CHUNK)
            for drawn in encoding.spread(self._points(position, chunk)):
                position += 1
                if encoding.space.feasible(drawn):
                    found.append(drawn)
                elif misses + 1 < most_misses:
                    misses += 1
                    continue
                else:
                    found.append(self._search(encoding.space, position, fixed))
                misses = 0
                if len(found) == count:
                    break
        return Batch(tuple(found), position, False)

    def _make_encoding(self, fixed: _Fixed) -> Encoding:
        return Encoding(self.problem.space.restrict(_of_key(fixed)))

    @abstractmethod
    def _points(self, position: int, count: int) -> FloatArray:
        """Return the points `position`, `position + 1`, ... of the sequence, [count, parameters], in [0, 1)."""

    def _search(self, space: Space, position: int, fixed: Mapping[str, Scalar]) -> Configuration:
        """Return the next feasible configuration after a random index, for a finite space with few feasible ones.

        Raises InvalidInput if there is none or none was found.
        """
        if space.lattice is None:
            raise no_feasible(space, fixed, f"{_MOST_MISSES} configurations in a row")
        starts = np.random.default_rng(_words(self.seed, position)).random(_SEARCHES) * space.lattice.size
        for start in (*map(int, starts), 0):
            for _, configuration in islice(space.lattice.walk(start), _MOST_STEPS):
                if configuration is not None:
                    return configuration
        raise no_feasible(space, fixed, "every configuration that was tried")


class Random(_Sequence):
    """Independent uniform draws."""

    def _points(self, position: int, count: int) -> FloatArray:
        # Philox gives four numbers for each step of its counter and can begin at any step. Each position has own steps.
        steps = -(-self._dimension // 4)
        key = np.random.SeedSequence(_words(self.seed)).generate_state(2, np.uint64)
        generator = np.random.Generator(np.random.Philox(key=key, counter=position * steps))
        return generator.random((count, 4 * steps))[:, : self._dimension]


class Sobol(_Sequence):
    """A Sobol sequence that the seed scrambles [matousek-1998]."""

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        # scipy.stats takes a second to import, and the other algorithms do not need it.
        from scipy.stats import qmc

        self._engine = qmc.Sobol(self._dimension, scramble=True, rng=np.random.default_rng(_words(seed)))

    def _points(self, position: int, count: int) -> FloatArray:
        engine = self._engine
        if engine.num_generated > position:
            engine.reset()
        if engine.num_generated < position:
            engine.fast_forward(position - engine.num_generated)
        # The first point is drawn separately, because scipy warns about counts that are not a power of two.
        return np.asarray(engine.random(1 if position == 0 else count), dtype=np.float64)


class LatinHypercube(_Sequence):
    """Latin hypercubes of `block` points, each with its own generator.

    Points are random within their cells, or in the centres with `centred` [robert-2021, definition 6].
    """

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        block = options["block"]
        assert isinstance(block, int)
        self._block = block
        self._latest: tuple[int, FloatArray] | None = None

    def _points(self, position: int, count: int) -> FloatArray:
        number, offset = divmod(position, self._block)
        return self._hypercube(number)[offset : offset + count]

    def _hypercube(self, number: int) -> FloatArray:
        if self._latest is None or self._latest[0] != number:
            from scipy.stats import qmc  # imported here for the same reason as above

            generator = np.random.default_rng(_words(self.seed, number))
            engine = qmc.LatinHypercube(self._dimension, scramble=not self.options["centred"], rng=generator)
            self._latest = number, np.asarray(engine.random(self._block), dtype=np.float64)
        return self._latest[1]


class Grid(Algorithm):
    """Every feasible configuration of the grid once, in the order of `core.lattice`; then the space is exhausted.

    The cursor is an index of the lattice. Configurations in the history are not suggested again: the default, the
    user's own configurations, and the results of asks with fixed values, which have a lattice of their own.
    """

    cost = Cost.CHEAP
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        levels = options["levels"]
        assert isinstance(levels, int)
        self._levels = levels
        self._lattice_of = lru_cache(_REMEMBERED_PARTS)(self._make_lattice)
        self._finished: set[str] = set()
        # The index up to which a part with fixed values has only finished trials. It only saves time.
        self._done: dict[_Fixed, int] = {}

    def update(self, finished: Sequence[TrialRecord]) -> None:
        self._finished.update(self.problem.space.key(trial.configuration) for trial in finished)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        part = _as_key(fixed)
        seen = {self.problem.space.key(trial.configuration) for trial in pending}
        start = self._done.get(part, 0) if fixed else cursor
        found: list[Configuration] = []
        position, misses, all_done = start, 0, True
        for following, configuration in self._lattice_of(part).walk(start):
            if len(found) == count:
                break
            position = following
            key = None if configuration is None else self.problem.space.key(configuration)
            if configuration is None:
                misses += 1
                if misses > _MOST_GRID_STEPS:
                    raise no_feasible(self.problem.space, fixed, f"the next {_MOST_GRID_STEPS} steps through the grid")
            elif key not in self._finished:
                all_done = False
                if key not in seen:
                    found.append(configuration)
                    misses = 0
            if fixed and all_done:
                self._done[part] = following
        if not found and not self._finished and not seen and start == 0:
            raise no_feasible(self.problem.space, fixed, "every configuration of the grid")
        return Batch(tuple(found), cursor if fixed else position, len(found) < count)

    def _make_lattice(self, fixed: _Fixed) -> Lattice:
        return lattice_of(self.problem.space.restrict(_of_key(fixed)), self._levels)


def lattice_of(space: Space, levels: int) -> Lattice:
    """Return the grid of a space, in which a continuum has `levels` evenly spaced values, both ends included."""
    return Lattice([_with_levels(parameter, levels) for parameter in space.parameters], space.constraints)


def _with_levels(parameter: Parameter, levels: int) -> Parameter:
    """Return the parameter, or an ordinal parameter with some of its values if it is a continuum."""
    if not isinstance(parameter, FloatParameter) or parameter.size() is not None:
        return parameter
    alone = Encoding(Space((replace(parameter, condition=None),)))
    found = alone.decode(np.linspace(0.0, 1.0, levels)[:, None])
    # Twelve digits give the number that a person would write: 0.01, not 0.010000000000000004.
    values = {min(max(float(f"{level[parameter.name]:.12g}"), parameter.min), parameter.max) for level in found}
    return OrdinalParameter(parameter.name, tuple(sorted(values)), condition=parameter.condition)


def _as_key(fixed: Mapping[str, Scalar]) -> _Fixed:
    # The type's name distinguishes 1 from True, which would otherwise be the same key.
    return tuple(sorted((name, type(value).__name__, value) for name, value in fixed.items()))


def _of_key(key: _Fixed) -> Configuration:
    return {name: value for name, _, value in key}


def _words(*numbers: int) -> list[int]:
    """Return the numbers without signs, as a seed sequence requires."""
    return [number % 2**64 for number in numbers]
