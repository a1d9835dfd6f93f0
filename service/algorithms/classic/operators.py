"""The operators of the heuristics: neighbours, crossover, mutation, repair and selection.

Their source is [robert-2021, sections 3.3.1 and 3.3.3]. A genome is the configuration itself, and a gene is the value
of an active parameter ("Genotype encoding" there). A parameter's neighbouring values are

- on a grid of at most 20 levels: one level up or down;
- on a finer grid and in a continuum, where a single level would be too small a step: values about a tenth of the range
  away on the parameter's own scale, and at least one level;
- for a boolean and a categorical parameter: every other value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from service.algorithms.feasible import feasible_part
from service.core.encoding import Encoding, FloatArray
from service.core.feasibility import FeasibleSet
from service.core.parameters import CategoricalParameter, Parameter
from service.core.space import Configuration, Scalar, Space

_MOST_SINGLE_LEVELS = 20
_STEP = 0.1
# The values of a continuum in the binary coding.
_CONTINUUM_LEVELS = 2**16
# Each parameter of a neighbour goes up, goes down or stays, with equal probabilities [robert-2021, figure 3.7]. With
# many parameters that would change almost the whole configuration, so then two parameters move on average.
_MOVING, _MOVED = 2.0 / 3.0, 2.0


class Genetics:
    """The operators on the configurations with certain fixed values.

    Results have exact values, the fixed values and exactly the active parameters. Only `repair` considers constraints.
    """

    def __init__(self, space: Space, fixed: Mapping[str, Scalar]) -> None:
        """Raises InvalidInput (field `fixed.<name>`) for a value that no configuration can have."""
        self.space = space.restrict(fixed)
        self._whole, self._fixed = space, dict(fixed)
        self._narrowed = {one.name for one in self.space.parameters if one is not space[one.name]}
        self._scales: dict[str, Encoding] = {}

    @cached_property
    def feasible(self) -> FeasibleSet:
        """The feasible configurations, of which there is at least one."""
        return feasible_part(self._whole, self._fixed)

    def complete(self, values: Mapping[str, Scalar], random: np.random.Generator) -> Configuration:
        """Return a configuration with the allowed and active ones of these values; missing values are drawn."""
        kept = dict(values)
        for name in self._narrowed & kept.keys():
            if self.space[name].contains(kept[name]):
                kept[name] = self.space[name].cast(kept[name])
            else:
                del kept[name]
        while missing := [name for name in self.space.active(kept) if name not in kept]:
            for name in missing:
                kept[name] = self._draw(name, float(random.random()))
        active = set(self.space.active(kept))
        return {name: kept[name] for name in self.space.names() if name in active}

    def crossover(
        self, first: Configuration, second: Configuration, random: np.random.Generator, points: int | None
    ) -> Configuration:
        """Return a child of two parents [robert-2021, definition 11].

        Args:
            points: the number of cuts, between which the parents alternate, limited to the number of places. None: each
                gene comes from either parent with equal probabilities.

        A gene that only one parent has, because it is inactive in the other, comes from that parent.
        """
        names = self.space.names()
        if points is None:
            from_first = random.random(len(names)) < 0.5
        else:
            places = len(names) - 1
            turns = np.zeros(len(names), dtype=np.intp)
            turns[1 + random.permutation(places)[: min(points, places)]] = 1
            from_first = turns.cumsum() % 2 == 0
        child: Configuration = {}
        for name, mine in zip(names, from_first.tolist(), strict=True):
            parent, other = (first, second) if mine else (second, first)
            value = parent.get(name, other.get(name))
            if value is not None:
                child[name] = value
        return self.complete(child, random)

    def mutate(self, configuration: Configuration, rate: float, random: np.random.Generator) -> Configuration:
        """Move each gene to a neighbouring value with the probability `rate`; at least one gene moves."""
        free = [name for name in configuration if self.space[name].size() != 1]
        if not free:
            return self.complete(configuration, random)
        chosen = random.random(len(free)) < rate
        if not chosen.any():
            chosen[random.integers(len(free))] = True
        moving = [name for name, moves in zip(free, chosen.tolist(), strict=True) if moves]
        moved = {name: self._step(name, configuration[name], random) for name in moving}
        return self.complete({**configuration, **moved}, random)

    def binary_child(
        self, first: Configuration, second: Configuration, rate: float | None, random: np.random.Generator
    ) -> Configuration:
        """Return a uniform crossover of the bits of two parents [martinez-alvarez-2015, section 4.1].

        A parameter with n values has as many genes as n - 1 has bits; a continuum has 2**16 values. `rate`: the
        probability that a gene flips, of which at least one does; None: no gene flips. A number beyond the last value
        counts from the first one again.
        """
        names = [name for name in self.space.names() if name in first or name in second]
        widths = [(self._levels(name) - 1).bit_length() for name in names]
        flips = np.zeros(sum(widths), dtype=np.bool_)
        if rate is not None and len(flips):
            flips = random.random(len(flips)) < rate
            flips[random.integers(len(flips))] |= not flips.any()
        child: Configuration = {}
        place = 0
        for name, width in zip(names, widths, strict=True):
            mine, other = first.get(name, second.get(name)), second.get(name, first.get(name))
            assert mine is not None
            assert other is not None
            mask = int(sum(1 << bit for bit in np.flatnonzero(random.random(width) < 0.5)))
            number = (self._number(name, mine) & mask) | (self._number(name, other) & ~mask)
            number ^= int(sum(1 << bit for bit in np.flatnonzero(flips[place : place + width])))
            child[name] = self._numbered(name, number % self._levels(name))
            place += width
        return self.complete(child, random)

    def _levels(self, name: str) -> int:
        return self.space[name].size() or _CONTINUUM_LEVELS

    def _number(self, name: str, value: Scalar) -> int:
        parameter = self.space[name]
        if parameter.size() is not None:
            return parameter.rank(value)
        return round(float(self._scale(name).encode([{name: value}])[0, 0]) * (_CONTINUUM_LEVELS - 1))

    def _numbered(self, name: str, number: int) -> Scalar:
        parameter = self.space[name]
        if parameter.size() is not None:
            return parameter.value_at(number)
        return self._scale(name).decode([[number / (_CONTINUUM_LEVELS - 1)]])[0][name]

    def neighbour(self, configuration: Configuration, random: np.random.Generator) -> Configuration:
        """Return a random neighbour on the grid, in any direction [robert-2021, definition 19 and figure 3.7]."""
        free = sum(self.space[name].size() != 1 for name in configuration)
        return self.mutate(configuration, min(_MOVING, _MOVED / max(free, 1)), random)

    def repair(self, child: Configuration, parent: Configuration, random: np.random.Generator) -> Configuration:
        """Return the child if the constraints hold, else a feasible configuration near it.

        If others than the parent are near, it is one of these.
        """
        return self.feasible.repaired(child, parent if self.space.feasible(parent) else None, random)

    def _draw(self, name: str, number: float) -> Scalar:
        """Return the value for a number that is uniform in [0, 1)."""
        return self._scale(name).spread([[number]])[0][name]

    def _step(self, name: str, value: Scalar, random: np.random.Generator) -> Scalar:
        parameter = self.space[name]
        size = parameter.size()
        if size is None:
            return self._far(name, value, random)
        rank = parameter.rank(value)
        if isinstance(parameter, CategoricalParameter):
            return parameter.value_at((rank + 1 + int(random.integers(size - 1))) % size)
        if size > _MOST_SINGLE_LEVELS:
            far = self._far(name, value, random)
            if parameter.rank(far) != rank:
                return far
        up = rank == 0 or (rank < size - 1 and random.random() < 0.5)
        return parameter.value_at(rank + 1 if up else rank - 1)

    def _far(self, name: str, value: Scalar, random: np.random.Generator) -> Scalar:
        """Return a value about one step away on the parameter's scale, reflected at its ends."""
        scale = self._scale(name)
        code = abs(float(scale.encode([{name: value}])[0, 0]) + random.normal(0.0, _STEP))
        return scale.decode([[min(code, 2.0 - code)]])[0][name]

    def _scale(self, name: str) -> Encoding:
        if name not in self._scales:
            alone: Parameter = replace(self.space[name], condition=None)
            self._scales[name] = Encoding(Space((alone,)))
        return self._scales[name]


def tournament(count: int, size: int, random: np.random.Generator) -> tuple[int, int]:
    """Return the best of each of two random subsets of `count` individuals, whose order is the best first.

    The subsets are disjoint and have `size` members, or half of the population if it is too small
    [robert-2021, section 3.3.1, "Tournament pick"].
    """
    size = min(size, count // 2)
    if size == 0:
        return 0, 0
    drawn = random.choice(count, 2 * size, replace=False)
    return int(drawn[:size].min()), int(drawn[size:].min())


def roulette(values: Sequence[float] | FloatArray, random: np.random.Generator) -> tuple[int, int]:
    """Return two different individuals, drawn with probabilities proportional to their fitness.

    `values`: [n]; smaller is better. The fitness is the distance to the worst value; the worst has one n-th of the
    best's fitness, so that every individual has a chance [robert-2021, section 3.3.1, "Roulette wheel"].
    """
    scores = np.asarray(values, dtype=np.float64)
    if len(scores) < 2:
        return 0, 0
    span = float(scores.max() - scores.min())
    told_apart = 0.0 < span < np.inf
    fitness = (scores.max() - scores) / span + 1.0 / (len(scores) - 1) if told_apart else np.ones(len(scores))
    first, second = random.choice(len(scores), 2, replace=False, p=fitness / fitness.sum())
    return int(first), int(second)
