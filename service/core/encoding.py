"""The encoding of configurations as points of the unit cube, and its inverse. No other module scales values.

A number is spaced evenly on its own scale: linear, logarithmic with `log`, by rank on a multiplicative grid. Choices
and booleans are spaced by rank. A parameter with a single value is always 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from service.core.parameters import (
    BoolParameter,
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    OrdinalParameter,
    Parameter,
    Scalar,
)
from service.core.space import Configuration, Space

FloatArray: TypeAlias = npt.NDArray[np.float64]
# Ranks in arrays have 64 bits.
_LARGEST_PLACE = 2**62
Kind = Literal["numeric", "ordinal", "categorical", "boolean", "activity"]


@dataclass(frozen=True)
class Column:
    """One coordinate of the cube: the parameter's name, its kind and its number of levels (None: a continuum).

    Levels are at 0, 1 / (size - 1), ..., 1, except in a numeric column with a log scale and an additive step.
    """

    name: str
    kind: Kind
    size: int | None


class Encoding:
    """The encoding of a space.

    The first columns are the parameters, in their order; an inactive parameter is encoded by its default. Each
    conditional parameter has a further column of kind `activity`, which is 1 if the parameter is active and else 0.
    The numbers in `logarithmic`, all above 0, have a logarithmic scale in any case.
    """

    def __init__(self, space: Space, logarithmic: Set[str] = frozenset()) -> None:
        self.space = space
        self._scales = tuple(_scale_of(parameter, parameter.name in logarithmic) for parameter in space.parameters)
        self._conditional = tuple(one.name for one in space.parameters if one.condition is not None)
        self.columns: tuple[Column, ...] = (
            *(Column(one.name, _kind_of(one), one.size()) for one in space.parameters),
            *(Column(name, "activity", 2) for name in self._conditional),
        )
        self.dimension = len(self.columns)
        self._defaults = {one.name: one.default_value() for one in space.parameters}

    def encode(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Return the rows of n configurations of the space: [n, dimension], within [0, 1]."""
        cube = np.empty((len(configurations), self.dimension))
        for place, (name, scale) in enumerate(zip(self.space.names(), self._scales, strict=True)):
            default = self._defaults[name]
            cube[:, place] = scale.encode([configuration.get(name, default) for configuration in configurations])
        for place, name in enumerate(self._conditional, start=len(self._scales)):
            cube[:, place] = [name in configuration for configuration in configurations]
        return cube

    def decode(self, cube: npt.ArrayLike) -> list[Configuration]:
        """Return the configurations nearest to the rows of `cube`, [n, dimension] or one row, clipped to [0, 1].

        The values determine which parameters are active; activity columns are ignored and may be missing. A result may
        break a constraint. A configuration's own row gives the configuration again: exactly on grids, up to rounding
        for a continuum, and up to the precision of a float for more than 2**45 levels.
        """
        rows = np.atleast_2d(np.asarray(cube, dtype=np.float64)).clip(0.0, 1.0)
        return self._configurations([scale.decode(rows[:, place]) for place, scale in enumerate(self._scales)])

    def spread(self, numbers: npt.ArrayLike) -> list[Configuration]:
        """Return configurations for rows of numbers that are uniform in [0, 1), with a column for each parameter.

        Unlike `decode`, which gives the first and the last level half of the share of the others, `spread` gives all
        levels equal shares (on a log scale with an additive step, the share that the level's step spans).
        """
        rows = np.atleast_2d(np.asarray(numbers, dtype=np.float64))
        return self._configurations([scale.spread(rows[:, place]) for place, scale in enumerate(self._scales)])

    def places(self, numbers: FloatArray) -> dict[str, npt.NDArray[np.int64] | FloatArray]:
        """Return the values that `spread` gives as arrays, [n] by name: ranks, and the values of a continuum."""
        return {
            name: scale.places(numbers[:, place])
            for place, (name, scale) in enumerate(zip(self.space.names(), self._scales, strict=True))
        }

    def numbers(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Return numbers, [n, parameters], for which `spread` gives these configurations."""
        found = np.full((len(configurations), len(self._scales)), 0.5)
        for place, (name, scale) in enumerate(zip(self.space.names(), self._scales, strict=True)):
            active = [index for index, one in enumerate(configurations) if name in one]
            found[active, place] = scale.numbers([configurations[index][name] for index in active])
        return found

    def numbers_at(self, place: int, ranks: npt.NDArray[np.int64]) -> FloatArray:
        """Return numbers, [n], for which `spread` gives the parameter at this place the values of these ranks."""
        scale = self._scales[place]
        assert isinstance(scale, _Ranks), "a continuum has no ranks"
        return scale.numbers_at(ranks)

    def levels(self, place: int, most: int) -> tuple[list[Scalar], FloatArray]:
        """Return up to `most` values of the parameter at this place, evenly spread on its scale, and their codes.

        The codes are ascending. A parameter with at most `most` values returns all of them.
        """
        parameter, scale = self.space.parameters[place], self._scales[place]
        size = parameter.size()
        if size is not None and size <= most:
            values = [parameter.value_at(rank) for rank in range(size)]
        else:
            values = list(dict.fromkeys(scale.decode(np.linspace(0.0, 1.0, most))))
        return values, scale.encode(values)

    def straight(self, name: str) -> tuple[float, float] | None:
        """Return the value at code 0 and the difference to that at code 1, if codes are a linear function of values."""
        parameter = self.space[name]
        scale = self._scales[self.space.names().index(name)]
        if not isinstance(parameter, FloatParameter | IntParameter) or parameter.factor is not None:
            return None
        if isinstance(scale, _LogSteps) or parameter.log:
            return None
        size = parameter.size()
        last = parameter.max if size is None else parameter.value_at(size - 1)
        return float(parameter.min), float(last) - float(parameter.min)

    def _configurations(self, columns: Sequence[Sequence[Scalar]]) -> list[Configuration]:
        names = self.space.names()
        return [self.space.prune(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


class _Continuum:
    """A float without a grid."""

    def __init__(self, parameter: FloatParameter) -> None:
        self._least, self._most, self._log = parameter.min, parameter.max, parameter.log
        self._low, self._high = (
            (math.log(self._least), math.log(self._most)) if self._log else (self._least, self._most)
        )
        # Bounds that differ only in their last digit may have equal logarithms.
        self._width = self._high - self._low or 1.0

    def encode(self, values: Sequence[Scalar]) -> FloatArray:
        numbers = np.array(values, dtype=np.float64)
        positions = np.log(numbers) if self._log else numbers
        return ((positions - self._low) / self._width).clip(0.0, 1.0)

    def decode(self, codes: FloatArray) -> list[Scalar]:
        # The weighted sum makes 0 and 1 exactly the bounds, and + 0.0 turns the negative zero into zero.
        positions = self._low * (1.0 - codes) + self._high * codes
        numbers = np.exp(positions) if self._log else positions
        return [*(numbers.clip(self._least, self._most) + 0.0).tolist()]

    spread = decode
    numbers = encode

    def places(self, numbers: FloatArray) -> FloatArray:
        return np.array(self.decode(numbers), dtype=np.float64)


class _Ranks:
    """Levels with even spaces, by rank."""

    def __init__(self, parameter: Parameter) -> None:
        size = parameter.size()
        assert size is not None
        self._parameter, self._size = parameter, size

    def encode(self, values: Sequence[Scalar]) -> FloatArray:
        ranks = np.array([self._parameter.rank(value) for value in values], dtype=np.float64)
        return ranks / max(self._size - 1, 1)

    def decode(self, codes: FloatArray) -> list[Scalar]:
        return self._values(np.rint(codes * (self._size - 1)))

    def spread(self, numbers: FloatArray) -> list[Scalar]:
        return self._values(np.floor(numbers * self._size))

    def places(self, numbers: FloatArray) -> npt.NDArray[np.int64]:
        return np.floor(numbers * self._size).clip(0, min(self._size - 1, _LARGEST_PLACE)).astype(np.int64)

    def numbers(self, values: Sequence[Scalar]) -> FloatArray:
        return self.numbers_at(np.array([self._parameter.rank(value) for value in values], dtype=np.float64))

    def numbers_at(self, ranks: npt.NDArray[Any]) -> FloatArray:
        return np.asarray((ranks + 0.5) / self._size)

    def _values(self, ranks: FloatArray) -> list[Scalar]:
        last = self._size - 1
        return [self._parameter.value_at(min(int(rank), last)) for rank in ranks.tolist()]


class _LogSteps(_Ranks):
    """An additive grid on a log scale."""

    def __init__(self, parameter: FloatParameter | IntParameter) -> None:
        super().__init__(parameter)
        first, second, last = (float(parameter.value_at(rank)) for rank in (0, 1, self._size - 1))
        self._low, self._width = math.log(first), math.log(last) - math.log(first) or 1.0
        # The last point gets the share of a whole step.
        self._spread_width = math.log(last + (second - first)) - self._low
        self._first, self._step = first, second - first

    def encode(self, values: Sequence[Scalar]) -> FloatArray:
        return ((np.log(np.array(values, dtype=np.float64)) - self._low) / self._width).clip(0.0, 1.0)

    def decode(self, codes: FloatArray) -> list[Scalar]:
        positions = np.exp(self._low + codes * self._width)
        return self._values(np.rint((positions - self._first) / self._step))

    def spread(self, numbers: FloatArray) -> list[Scalar]:
        positions = np.exp(self._low + numbers * self._spread_width)
        return self._values(np.floor((positions - self._first) / self._step).clip(0.0))

    def places(self, numbers: FloatArray) -> npt.NDArray[np.int64]:
        positions = np.exp(self._low + numbers * self._spread_width)
        return (
            np.floor((positions - self._first) / self._step)
            .clip(0, min(self._size - 1, _LARGEST_PLACE))
            .astype(np.int64)
        )

    def numbers(self, values: Sequence[Scalar]) -> FloatArray:
        middles = np.array(values, dtype=np.float64) + 0.5 * self._step
        return np.asarray(((np.log(middles) - self._low) / self._spread_width).clip(0.0, 1.0))


_Scale = _Continuum | _Ranks


def _scale_of(parameter: Parameter, logarithmic: bool) -> _Scale:
    size = parameter.size()
    if logarithmic and isinstance(parameter, FloatParameter | IntParameter):
        parameter = replace(parameter, log=True)
    if isinstance(parameter, FloatParameter) and size is None:
        return _Continuum(parameter)
    stepped = isinstance(parameter, FloatParameter | IntParameter) and parameter.log and parameter.factor is None
    if stepped and size is not None and size > 1:
        assert isinstance(parameter, FloatParameter | IntParameter)
        return _LogSteps(parameter)
    return _Ranks(parameter)


def _kind_of(parameter: Parameter) -> Kind:
    match parameter:
        case BoolParameter():
            return "boolean"
        case CategoricalParameter():
            return "categorical"
        case OrdinalParameter():
            return "ordinal"
        case _:
            return "numeric"
