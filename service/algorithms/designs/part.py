"""The part of a space from which an ask may draw, for algorithms that choose among configurations."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from service.algorithms.feasible import feasible_part
from service.core.encoding import Encoding, FloatArray
from service.core.feasibility import FeasibleSet
from service.core.problem import Problem
from service.core.space import Configuration, Scalar

_TRIES, _NEIGHBOURS = 200, 64
# With more choices than this, the order of the list serves as a scale.
_MOST_AXES = 64

FixedKey: TypeAlias = tuple[tuple[str, str, Scalar], ...]


class Part:
    """The feasible configurations with certain fixed values.

    Raises InvalidInput as `feasible_part` does, at the latest when a configuration is needed.
    """

    def __init__(self, problem: Problem, fixed: Mapping[str, Scalar]) -> None:
        self.problem, self.fixed = problem, dict(fixed)
        self.space = problem.space.restrict(fixed)
        self._own, self._whole = Encoding(self.space), Encoding(problem.space)

    @cached_property
    def feasible(self) -> FeasibleSet:
        """The feasible configurations, of which there is at least one."""
        return feasible_part(self.problem.space, self.fixed)

    @property
    def listed(self) -> list[Configuration] | None:
        """All of them; None if there are too many."""
        return self.feasible.listed

    @cached_property
    def listed_rows(self) -> FloatArray:
        """Return the rows, [n, columns], of the listed configurations."""
        assert self.listed is not None
        return self.rows(self.listed)

    def rows(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Return the rows, [n, columns], in the encoding of the whole space."""
        return self._whole.encode(configurations)

    def decode(self, rows: npt.ArrayLike) -> list[Configuration]:
        """Return this part's configurations for rows of the whole space's encoding; they may break constraints."""
        return self._own.decode(rows)

    def spread(self, numbers: npt.ArrayLike) -> list[Configuration]:
        """Return the result of `Encoding.spread` for this part; it may break constraints."""
        return self._own.spread(numbers)

    def sample(self, count: int, random: np.random.Generator, taken: Set[str] = frozenset()) -> list[Configuration]:
        """Return up to `count` distinct free configurations, spread evenly; all of them if few are left."""
        key = self.problem.space.key
        if self.listed is not None:
            free = [one for one in self.listed if key(one) not in taken] if taken else self.listed
            if len(free) <= count:
                return list(free)
            return [free[place] for place in np.sort(random.choice(len(free), count, replace=False))]
        drawn = self.feasible.spread(sobol(len(self.space.parameters), count, random))
        return list({name: one for one in drawn if (name := key(one)) not in taken}.values())

    def unseen(self, taken: Set[str], random: np.random.Generator) -> Configuration | None:
        """Return any free configuration; None if there is none."""
        return self.feasible.unseen(taken, random)

    def nearest(self, row: FloatArray, taken: Set[str], random: np.random.Generator) -> Configuration | None:
        """Return a free configuration near a row; None if there is none."""
        key = self.problem.space.key
        (wanted,) = self.decode(row)
        found = [self.feasible.repaired(wanted, None, random)]
        found += self.feasible.neighbours(found[0], _NEIGHBOURS, random)
        found = [one for one in found if key(one) not in taken] or self.sample(_TRIES, random, taken)
        if not found:
            return self.unseen(taken, random)
        return found[int(np.argmin(((self.rows(found) - row) ** 2).sum(1)))]

    def coordinates(self, rows: FloatArray) -> FloatArray:
        """Return points, [n, c], whose distances measure differences. Two choices have the distance 1."""
        return coordinates(self._whole, rows)


def coordinates(encoding: Encoding, rows: FloatArray) -> FloatArray:
    """Return rows as points, [n, c], of a Euclidean space with an axis for each choice and without constant columns."""
    parts: list[FloatArray] = []
    for place, column in enumerate(encoding.columns):
        if column.size == 1:
            continue
        if column.kind == "categorical" and column.size is not None and 2 < column.size <= _MOST_AXES:
            ranks = np.rint(rows[:, place] * (column.size - 1))
            parts.append((ranks[:, None] == np.arange(column.size)) / np.sqrt(2.0))
        else:
            parts.append(rows[:, place, None])
    return np.hstack(parts) if parts else np.zeros((len(rows), 1))


def sobol(dimension: int, count: int, random: np.random.Generator) -> FloatArray:
    """Return the first points, [count, dimension], of a Sobol sequence that the generator scrambles."""
    # scipy.stats takes a second to import, and not every algorithm needs it.
    from scipy.stats import qmc

    with warnings.catch_warnings():
        # SciPy warns about counts that are not a power of two.
        warnings.simplefilter("ignore")
        return np.asarray(qmc.Sobol(dimension, rng=random).random(count), dtype=np.float64)


def fixed_key(fixed: Mapping[str, Scalar]) -> FixedKey:
    """Return the fixed values as a key that distinguishes 1 from True."""
    return tuple(sorted((name, type(value).__name__, value) for name, value in fixed.items()))


def fixed_of(key: FixedKey) -> Configuration:
    """Return the fixed values of such a key."""
    return {name: value for name, _, value in key}


def seeded(*words: int | Iterable[int]) -> np.random.Generator:
    """Return a generator that integers of any size and sign seed."""
    flat = [number for word in words for number in ([word] if isinstance(word, int) else word)]
    return np.random.default_rng([number % 2**64 for number in flat])
