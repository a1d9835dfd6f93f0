"""The part of a space from which an ask may draw, as rows of the encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.stats.qmc import Sobol

from service.algorithms.feasible import feasible_part
from service.core.encoding import Encoding, FloatArray
from service.core.feasibility import FeasibleSet
from service.core.parameters import Condition, Parameter
from service.core.space import Configuration, Scalar

# A finer grid is searched as a continuum, and the result is moved to the nearest point.
_MOST_LEVELS = 1024
_INCUMBENTS = 5
_CONSTRAINED = 4
# The distances of neighbours, in powers of ten.
_FAR = (-3.0, -0.5)

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Conditional:
    """The column of a conditional parameter: `place` and the columns of its `parent` and of its `activity`.

    `codes`: the parent's codes with which the parameter is active. `default`: the code of its default.
    """

    place: int
    parent: int
    codes: FloatArray
    default: float
    activity: int


class Region:
    """The configurations with certain fixed values. Rows are in the encoding of the whole space."""

    def __init__(self, encoding: Encoding, fixed: Mapping[str, Scalar]) -> None:
        self.encoding, self.space = encoding, encoding.space
        self.part = self.space.restrict(fixed)
        self.fixed = tuple(fixed)
        self._exact = {name: self.part[name].value_at(0) for name in fixed}
        names = self.space.names()
        self._places = {name: place for place, name in enumerate(names)}
        self.levels: list[FloatArray | None] = [self._levels(self.part[name]) for name in names]
        self.smooth = [place for place, levels in enumerate(self.levels) if levels is None]
        self.stepped = [place for place, levels in enumerate(self.levels) if levels is not None and len(levels) > 1]
        self.categorical = {place for place in self.stepped if encoding.columns[place].kind == "categorical"}
        self._conditionals = list(self._parents_first())
        self._grid: tuple[list[Configuration], FloatArray] | None = None

    @cached_property
    def feasible_set(self) -> FeasibleSet:
        """The feasible configurations, of which there is at least one."""
        return feasible_part(self.space, self._exact)

    def whole(self) -> tuple[list[Configuration], FloatArray] | None:
        """Return all feasible configurations and their rows; None if there are too many to list."""
        if self._grid is None:
            listed = self.feasible_set.listed
            if listed is None:
                return None
            self._grid = listed, self.encoding.encode(listed)
        return self._grid

    @property
    def keys(self) -> list[str]:
        """The keys of all feasible configurations, in the order of `whole`; empty if there are too many to list."""
        return self.feasible_set.keys

    def settle(self, row: FloatArray) -> Configuration:
        """Return the configuration of a row, with exact fixed values."""
        (configuration,) = self.encoding.decode(row)
        return {name: self._exact.get(name, value) for name, value in configuration.items()}

    def feasible(self, rows: FloatArray) -> BoolArray:
        """Return a flag for each of b rows: whether it meets the constraints."""
        if not self.space.constraints:
            return np.ones(len(rows), dtype=np.bool_)
        return np.array([self.space.feasible(one) for one in self.encoding.decode(rows)], dtype=np.bool_)

    def spread(self, uniform: FloatArray) -> FloatArray:
        """Return rows for points of the unit cube with a column for each parameter; all levels have equal shares."""
        rows = np.zeros((len(uniform), self.encoding.dimension))
        for place, levels in enumerate(self.levels):
            numbers = uniform[:, place]
            if levels is None:
                rows[:, place] = numbers
            else:
                rows[:, place] = levels[np.minimum((numbers * len(levels)).astype(np.intp), len(levels) - 1)]
        return self.canonical(rows)

    def pool(self, incumbents: FloatArray, count: int, random: np.random.Generator) -> FloatArray:
        """Return feasible rows: of `count` rows of a Sobol sequence and as many neighbours of the first incumbents.

        With constraints there are fewer, because each row has to be decoded. A neighbour that breaks them is left out;
        neighbours in the parameters that the constraints connect are added.
        """
        near = self.matching(incumbents[:_INCUMBENTS])
        if not self.space.constraints:
            rows = self.spread(np.asarray(Sobol(len(self.levels), rng=random).random(count), dtype=np.float64))
            if len(near):
                rows = np.vstack([rows, self.vary(near[random.integers(0, len(near), count)], random, _FAR)])
            return rows
        count = max(count // _CONSTRAINED, 1)
        points = np.asarray(Sobol(len(self.levels), rng=random).random(count), dtype=np.float64)
        parts = [self.encoding.encode(self.feasible_set.spread(points))]
        if len(near):
            varied = self.vary(near[random.integers(0, len(near), count)], random, _FAR)
            parts.append(varied[self.feasible(varied)])
        return np.vstack([*parts, *self.neighbours(near, count // max(len(near), 1), random)])

    @cached_property
    def connected(self) -> bool:
        """Return whether all parameters are finite and constraints connect some of them."""
        return not self.smooth and self.feasible_set.connects

    @cached_property
    def inequalities(self) -> list[tuple[list[int], list[float], float]]:
        """The linear constraints as places, factors and the least sum of the products; see `FeasibleSet.linear`."""
        found = []
        for line in self.feasible_set.linear():
            scales = [self.encoding.straight(name) for name in line.factors]
            if None in scales or not line.factors:
                continue
            known = [scale for scale in scales if scale is not None]
            factors = [-factor * width for factor, (_, width) in zip(line.factors.values(), known, strict=True)]
            least = line.constant + sum(
                factor * low for factor, (low, _) in zip(line.factors.values(), known, strict=True)
            )
            found.append(([self._places[name] for name in line.factors], factors, least))
        return found

    def neighbours(self, rows: FloatArray, count: int, random: np.random.Generator) -> Iterator[FloatArray]:
        """Yield for each row up to `count` feasible rows that differ in a few parameters that constraints connect."""
        for row in rows:
            found = self.feasible_set.neighbours(self.settle(row), count, random) if self.feasible_set.connects else []
            yield self.encoding.encode(found) if found else rows[:0]

    def vary(self, rows: FloatArray, random: np.random.Generator, widths: tuple[float, float]) -> FloatArray:
        """Return neighbours of the rows, in which some coordinates are moved.

        The distance is 10 to a power drawn between the widths; stepped coordinates move to a level.
        """
        found = rows.copy()
        count = len(rows)
        places = np.array([*self.smooth, *self.stepped], dtype=np.intp)
        if not len(places):
            return self.canonical(found)
        # The number of moved coordinates varies from one to all of them.
        moved = random.random((count, len(places))) < random.random((count, 1)) ** 2
        moved[np.arange(count), random.integers(0, len(places), count)] = True
        width = 10.0 ** random.uniform(*widths, (count, 1))
        steps = random.normal(size=(count, len(places))) * width
        for index, place in enumerate(places):
            levels, mask = self.levels[place], moved[:, index]
            if levels is None:
                found[mask, place] = (found[mask, place] + steps[mask, index]).clip(0.0, 1.0)
            elif place in self.categorical:
                found[mask, place] = random.choice(levels, int(mask.sum()))
            else:
                # Move at least one level up or down.
                old = _nearest(levels, found[mask, place])
                move = steps[mask, index] * (len(levels) - 1)
                move = np.where(np.abs(move) < 1.0, np.where(move < 0.0, -1.0, 1.0), np.rint(move))
                found[mask, place] = levels[(old + move).clip(0, len(levels) - 1).astype(np.intp)]
        return self.canonical(found)

    def canonical(self, rows: FloatArray) -> FloatArray:
        """Set inactive parameters to their defaults and activity columns to match, in place, and return the rows."""
        if self._conditionals:
            active = np.ones((len(rows), len(self.levels)), dtype=np.bool_)
            for one in self._conditionals:
                met = (np.abs(rows[:, one.parent, None] - one.codes) < 1e-9).any(1) & active[:, one.parent]
                active[:, one.place] = met
                rows[~met, one.place] = one.default
                rows[:, one.activity] = met
        return rows

    def exact(self, rows: FloatArray) -> FloatArray:
        """Move stepped coordinates to their nearest levels, in place, and return the rows in canonical form."""
        for place in self.stepped:
            levels = self.levels[place]
            assert levels is not None
            rows[:, place] = levels[_nearest(levels, rows[:, place])]
        return self.canonical(rows)

    def inactive(self, rows: FloatArray) -> BoolArray:
        """Return flags, [b, d], for columns of inactive parameters."""
        mask = np.zeros(rows.shape, dtype=np.bool_)
        for one in self._conditionals:
            mask[:, one.place] = rows[:, one.activity] == 0.0
        return mask

    def moved(self, rows: FloatArray, names: Sequence[str]) -> FloatArray:
        """Return the distinct rows with the region's fixed values of these parameters in place of their own."""
        found = rows.copy()
        for name in names:
            place = self._places[name]
            levels = self.levels[place]
            assert levels is not None
            found[:, place] = levels[0]
        return np.unique(found, axis=0)

    def matching(self, rows: FloatArray) -> FloatArray:
        """Return the rows that have the fixed values and so lie in the region."""
        inactive = self.inactive(rows)
        matches = np.ones(len(rows), dtype=np.bool_)
        for place, levels in enumerate(self.levels):
            if levels is not None:
                known = (np.abs(rows[:, place, None] - levels) < 1e-9).any(1)
                matches &= known | inactive[:, place]
        return rows[matches]

    def _levels(self, parameter: Parameter) -> FloatArray | None:
        size = parameter.size()
        if size is None or size > _MOST_LEVELS:
            return None
        codes = self.encoding.encode([{parameter.name: parameter.value_at(rank)} for rank in range(size)])
        return codes[:, self._places[parameter.name]]

    def _parents_first(self) -> Iterator[_Conditional]:
        """Yield the conditional columns, each after its parent."""
        names = self.space.names()
        conditional = [name for name in names if self.space[name].condition is not None]
        activity = {name: len(names) + index for index, name in enumerate(conditional)}
        defaults = self.encoding.encode([{}])[0]
        waiting = list(conditional)
        while waiting:
            name = next(name for name in waiting if _condition(self.space[name]).parent not in waiting)
            waiting.remove(name)
            condition = _condition(self.space[name])
            codes = self.encoding.encode([{condition.parent: value} for value in condition.values])
            place, parent = self._places[name], self._places[condition.parent]
            yield _Conditional(place, parent, codes[:, parent], float(defaults[place]), activity[name])


def _nearest(levels: FloatArray, codes: FloatArray) -> npt.NDArray[np.intp]:
    """Return the ranks of the levels nearest to the codes; `levels` is ascending."""
    above = np.searchsorted(levels, codes).clip(1, len(levels) - 1)
    below = codes - levels[above - 1] < levels[above] - codes
    return np.where(below, above - 1, above)


def _condition(parameter: Parameter) -> Condition:
    assert parameter.condition is not None
    return parameter.condition
