"""The part of a space that an ask may draw from, for algorithms that choose among configurations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from service.algorithms.base import no_feasible
from service.algorithms.doe import Sobol
from service.core.encoding import Encoding, FloatArray
from service.core.problem import Problem
from service.core.space import Configuration, Scalar

# Parts with at most so many feasible configurations are listed.
MOST_LISTED = 50_000
# Of a part that constraints may make small enough, so many configurations are looked at to find out.
_MOST_WALKED = 2**18
_TRIES = 200
# Of more choices than that, the order of the list is taken for a scale.
_MOST_AXES = 64

FixedKey: TypeAlias = tuple[tuple[str, str, Scalar], ...]


class Part:
    """The feasible configurations with certain fixed values.

    Raises InvalidInput where no configuration can have the values, or where constraints seem to leave nothing.
    """

    def __init__(self, problem: Problem, fixed: Mapping[str, Scalar]) -> None:
        self.problem, self.fixed = problem, dict(fixed)
        self.space = problem.space.restrict(fixed)
        self._own, self._whole = Encoding(self.space), Encoding(problem.space)

    @cached_property
    def listed(self) -> list[Configuration] | None:
        """All of them, where they are few; None where not."""
        size = self.space.cardinality()
        most = _MOST_WALKED if self.space.constraints else MOST_LISTED
        found = None if size is None or size > most else self.space.enumerate(MOST_LISTED)
        if found is not None and not found:
            raise no_feasible(self.problem.space, self.fixed, "every configuration")
        return found

    @cached_property
    def listed_rows(self) -> FloatArray:
        """[n, columns]: the rows of what is listed."""
        assert self.listed is not None
        return self.rows(self.listed)

    def rows(self, configurations: Sequence[Configuration]) -> FloatArray:
        """[n, columns]: in the encoding of the whole space."""
        return self._whole.encode(configurations)

    def decode(self, rows: npt.ArrayLike) -> list[Configuration]:
        """The configurations of this part for rows of the encoding of the whole space; constraints may be broken."""
        return self._own.decode(rows)

    def spread(self, numbers: npt.ArrayLike) -> list[Configuration]:
        """As `Encoding.spread`, of this part; constraints may be broken."""
        return self._own.spread(numbers)

    def sample(self, count: int, random: np.random.Generator, taken: Set[str] = frozenset()) -> list[Configuration]:
        """Up to `count` distinct ones that are not taken, spread evenly; all that are left where they are few."""
        key = self.problem.space.key
        if self.listed is not None:
            free = [one for one in self.listed if key(one) not in taken] if taken else self.listed
            if len(free) <= count:
                return list(free)
            return [free[place] for place in np.sort(random.choice(len(free), count, replace=False))]
        drawn = Sobol(self.problem, seed=int(random.integers(2**31)), options={}).suggest(
            count, cursor=0, fixed=self.fixed
        )
        return list({name: one for one in drawn.configurations if (name := key(one)) not in taken}.values())

    def unseen(self, taken: Set[str], random: np.random.Generator) -> Configuration | None:
        """Any that is not taken. None where there is none."""
        found = self.sample(1, random, taken) or self.sample(_TRIES, random, taken)
        if found or self.listed is not None or self.space.lattice is None:
            return found[0] if found else None
        key = self.problem.space.key
        return next((one for _, one in self.space.lattice.walk(0) if one is not None and key(one) not in taken), None)

    def nearest(self, row: FloatArray, taken: Set[str], random: np.random.Generator) -> Configuration | None:
        """One not taken that is near to a row. None where there is none."""
        found = self.sample(_TRIES, random, taken)
        if not found:
            return self.unseen(taken, random)
        return found[int(np.argmin(((self.rows(found) - row) ** 2).sum(1)))]

    def coordinates(self, rows: FloatArray) -> FloatArray:
        """[n, c]: points whose distance tells how different configurations are. Two choices are at a distance of 1."""
        return coordinates(self._whole, rows)


def coordinates(encoding: Encoding, rows: FloatArray) -> FloatArray:
    """[n, c]: rows as points of a Euclidean space, each choice on an axis of its own. Constant columns are left out."""
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


def fixed_key(fixed: Mapping[str, Scalar]) -> FixedKey:
    """The fixed values as a key that tells 1 from True."""
    return tuple(sorted((name, type(value).__name__, value) for name, value in fixed.items()))


def fixed_of(key: FixedKey) -> Configuration:
    """The fixed values of such a key."""
    return {name: value for name, _, value in key}


def seeded(*words: int | Iterable[int]) -> np.random.Generator:
    """A generator for whole numbers of any size and sign."""
    flat = [number for word in words for number in ([word] if isinstance(word, int) else word)]
    return np.random.default_rng([number % 2**64 for number in flat])
