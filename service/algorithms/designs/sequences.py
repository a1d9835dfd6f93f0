"""Designs of experiments that do not learn from results.

`random`, `sobol` and `lhs` are sequences of points of the unit cube, which `core.feasibility` turns into feasible
configurations. The point at a position depends only on the seed, so the cursor is the only state, and an ask costs the
same at any position.

If the feasible configurations are few enough to list, a sequence is an order of all of them, followed by another order
of all of them, and so on: with noise a configuration is repeated only after all others have had their turn. Without
noise no configuration is suggested twice, and the sequence ends once all have been measured, feasible or not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.feasible import feasible_part
from service.core.encoding import Encoding, FloatArray
from service.core.errors import InvalidInput, JsonValue, shorten
from service.core.feasibility import FeasibleSet, feasible_set
from service.core.lattice import Lattice
from service.core.lifecycle import TrialState
from service.core.parameters import FloatParameter, OrdinalParameter, Parameter, Scalar
from service.core.problem import Problem
from service.core.space import Configuration, Space
from service.core.trial import TrialRecord

# The most steps to the next point of a grid, which take well below a second.
_MOST_GRID_STEPS = 100_000
_CHUNK = 256
# The points of a sequence that decide the order of a list; the rest of the list follows in a random order.
_MOST_ORDERED = 4096
# After this many points in a row that have been measured, any other configuration is suggested.
_MOST_REPEATS = 64
_MOST_FAILURES = 2
_REMEMBERED_PARTS = 16

_Fixed: TypeAlias = tuple[tuple[str, str, Scalar], ...]


class _Sequence(Algorithm):
    """An algorithm that is a sequence of points."""

    cost = Cost.CHEAP
    uses_history = False

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        self._part_of = lru_cache(_REMEMBERED_PARTS)(self._make_part)
        self._order_of = lru_cache(_REMEMBERED_PARTS)(self._make_order)
        self._dimension = len(problem.space.parameters)
        self._finished: set[str] = set()
        self._failures: dict[str, int] = {}

    def update(self, finished: Sequence[TrialRecord]) -> None:
        for trial in finished if not self.problem.noisy else ():
            key = self.problem.space.key(trial.configuration)
            if trial.state == TrialState.FAILED:
                self._failures[key] = self._failures.get(key, 0) + 1
            if trial.state != TrialState.FAILED or self._failures[key] >= _MOST_FAILURES:
                self._finished.add(key)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        place = _as_key(fixed)
        part = self._part_of(place)
        taken: set[str] = set()
        if not self.problem.noisy:
            taken = self._finished | {self.problem.space.key(trial.configuration) for trial in pending}
        if part.listed is not None:
            return self._listed(part.listed, place, count, cursor, taken)
        return self._endless(part, count, cursor, taken)

    def _listed(
        self, listed: Sequence[Configuration], place: _Fixed, count: int, cursor: int, taken: set[str]
    ) -> Batch:
        """Return the next free configurations of the orders of a list."""
        key = self.problem.space.key
        found: list[Configuration] = []
        position = cursor
        while len(found) < count:
            # Without noise, nothing is free after a whole round.
            if not self.problem.noisy and position - cursor >= 2 * len(listed):
                return Batch(tuple(found), position, True)
            turn, index = divmod(position, len(listed))
            configuration = listed[self._order_of(place, turn)[index]]
            position += 1
            if not self.problem.noisy:
                if key(configuration) in taken:
                    continue
                taken.add(key(configuration))
            found.append(dict(configuration))
        return Batch(tuple(found), position, False)

    def _endless(self, part: FeasibleSet, count: int, cursor: int, taken: set[str]) -> Batch:
        key = self.problem.space.key
        found: list[Configuration] = []
        position, repeats = cursor, 0
        while len(found) < count:
            chunk = self._points(position, min(count - len(found), _CHUNK))
            for configuration in part.spread(chunk):
                position += 1
                free = configuration
                if key(configuration) in taken:
                    repeats += 1
                    if repeats < _MOST_REPEATS:
                        continue
                    other = part.unseen(taken, np.random.default_rng(_words(self.seed, position)))
                    if other is None:
                        return Batch(tuple(found), position, True)
                    free = other
                repeats = 0
                found.append(free)
                if not self.problem.noisy:
                    taken.add(key(free))
        return Batch(tuple(found), position, False)

    def _make_part(self, fixed: _Fixed) -> FeasibleSet:
        return feasible_part(self.problem.space, _of_key(fixed))

    def _make_order(self, fixed: _Fixed, turn: int) -> list[int]:
        """Return the places of the list's configurations in the order of the sequence, for a turn of all of them."""
        part, key = self._part_of(fixed), self.problem.space.key
        assert part.listed is not None
        size = len(part.listed)
        places = {one: place for place, one in enumerate(part.keys)}
        drawn = min(size, _MOST_ORDERED)
        order: dict[int, None] = {}
        position = 0
        while position < drawn:
            points = self._points(turn * size + position, min(_CHUNK, drawn - position))
            position += len(points)
            order |= dict.fromkeys(places[key(one)] for one in part.spread(points))
        rest = np.setdiff1d(np.arange(size), list(order))
        return [*order, *np.random.default_rng(_words(self.seed, turn)).permutation(rest).tolist()]

    @abstractmethod
    def _points(self, position: int, count: int) -> FloatArray:
        """Return the points `position`, `position + 1`, ... of the sequence, at most [count, parameters], in [0, 1)."""


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

    The cursor is a place in the list of the feasible configurations or, if nobody can list them, an index of the
    lattice. Configurations in the history are not suggested again: the default, the user's own configurations, and the
    results of asks with fixed values, which have a grid of their own.
    """

    cost = Cost.CHEAP
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        levels = options["levels"]
        assert isinstance(levels, int)
        self._levels = levels
        self._grid_of = lru_cache(_REMEMBERED_PARTS)(self._make_grid)
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
        grid = self._grid_of(part)
        seen = {self.problem.space.key(trial.configuration) for trial in pending}
        start = self._done.get(part, 0) if fixed else cursor
        found: list[Configuration] = []
        position, misses, all_done = start, 0, True
        for following, configuration in grid.walk(start):
            if len(found) == count:
                break
            position = following
            key = None if configuration is None else self.problem.space.key(configuration)
            if configuration is None:
                misses += 1
                if misses > _MOST_GRID_STEPS:
                    raise too_sparse(self.problem.space, f"none of its next {_MOST_GRID_STEPS} points is feasible")
            elif key not in self._finished:
                all_done = False
                if key not in seen:
                    found.append(configuration)
                    misses = 0
            if fixed and all_done:
                self._done[part] = following
        return Batch(tuple(found), cursor if fixed else position, len(found) < count)

    def _make_grid(self, fixed: _Fixed) -> GridPoints:
        return GridPoints(self.problem.space, _of_key(fixed), self._levels)


class GridPoints:
    """The feasible points of a space's grid, in which a continuum has `levels` evenly spaced values.

    Raises InvalidInput if there are none.
    """

    def __init__(self, space: Space, fixed: Mapping[str, Scalar], levels: int) -> None:
        part = space.restrict(fixed)
        even = Space(tuple(_with_levels(parameter, levels) for parameter in part.parameters), part.constraints)
        assert even.lattice is not None
        self.lattice: Lattice = even.lattice
        self._space = even
        self._listed: list[Configuration] | None = None
        if even.constraints:
            size = even.finite.size
            if size is not None and not size.number:
                feasible_part(space, fixed)
                raise too_sparse(space, "none of its points is feasible")
            self._listed = feasible_set(even).listed

    @property
    def listed(self) -> list[Configuration] | None:
        """All feasible points in the order of the lattice; None without constraints or if they cannot be listed."""
        return self._listed

    def walk(self, start: int) -> Iterator[tuple[int, Configuration | None]]:
        """Yield all points once with the place after each, from a place on; None stands for points that break rules."""
        if self._listed is None:
            yield from self.lattice.walk(start)
            return
        # A cursor may come from a time at which it was an index of the lattice.
        for place in range(start, start + len(self._listed)):
            yield place + 1, dict(self._listed[place % len(self._listed)])


def too_sparse(space: Space, problem: str) -> InvalidInput:
    """Return the error for a grid of which no feasible point was found."""
    constraints = "; ".join(constraint.text for constraint in space.constraints)
    allowed = "the algorithm random, which does not need a grid"
    message = f"algorithm: the grid is too sparse for the constraints ({shorten(constraints, 300)}): {problem}. "
    return InvalidInput(
        "constraints", constraints, allowed, message=f"{message}Use {allowed}.", code="no_feasible_configuration"
    )


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
