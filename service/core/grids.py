"""Numeric grids: the points of a range with a step or a factor, in order. A grid with a step needs no list of them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal

# The precision makes each point the decimal that a person would write: 0.1 + 2 * 0.1 is 0.3.
_EXACT = Context(prec=60)


class Grid(ABC):
    """Points in ascending order. `size` is their number, and a point's rank is its position from 0."""

    size: int

    @abstractmethod
    def at(self, rank: int) -> float:
        """Return the exact point of this rank, the same float or int every time."""

    @abstractmethod
    def rank(self, value: float) -> int:
        """Return the rank of the point nearest to `value`."""

    @abstractmethod
    def find(self, value: float) -> float | None:
        """Return the point that equals `value` up to rounding errors; None if it is off the grid."""


class IntegerGrid(Grid):
    """The integers `least`, `least + step`, ... up to `most`; exact for any size."""

    def __init__(self, least: int, most: int, step: int) -> None:
        self._least, self._step = least, step
        self.size = (most - least) // step + 1

    def at(self, rank: int) -> int:
        return self._least + rank * self._step

    def rank(self, value: float) -> int:
        whole = value if isinstance(value, int) else round(value)
        return min(max((2 * (whole - self._least) + self._step) // (2 * self._step), 0), self.size - 1)

    def find(self, value: float) -> int | None:
        point = self.at(self.rank(value))
        return point if point == value else None


class AdditiveGrid(Grid):
    """The floats `least`, `least + step`, ... up to `most`; each is the decimal that a person would write."""

    def __init__(self, least: float, most: float, step: float) -> None:
        self._least, self._step = Decimal(repr(least)), Decimal(repr(step))
        ratio = _EXACT.divide(_EXACT.subtract(Decimal(repr(most)), self._least), self._step)
        # A range of 1 in steps of 1 / 3 has four points, although the third step ends just beyond it.
        self.size = math.floor(ratio + Decimal("1e-9")) + 1
        self._most, self._spacing = most, step

    def at(self, rank: int) -> float:
        return min(float(_EXACT.fma(self._step, rank, self._least)), self._most)

    def rank(self, value: float) -> int:
        steps = _EXACT.divide(_EXACT.subtract(Decimal(repr(value)), self._least), self._step)
        return min(max(round(steps), 0), self.size - 1)

    def find(self, value: float) -> float | None:
        point = self.at(self.rank(value))
        near = max(1e-6 * self._spacing, 8 * math.ulp(point))
        return point if abs(point - value) <= near else None


class MultiplicativeGrid(Grid):
    """Points that are evenly spaced on a log scale, up to rounding; see `of_floats` and `of_integers`."""

    def __init__(self, points: Sequence[float]) -> None:
        self._points = points
        self.size = len(points)

    @classmethod
    def of_floats(cls, least: float, most: float, factor: float) -> MultiplicativeGrid:
        """Return the grid `least`, `least * factor`, ... up to `most`."""
        return cls([min(float(point), most) for point in _powers(least, most, factor)])

    @classmethod
    def of_integers(cls, least: int, most: int, factor: float) -> MultiplicativeGrid:
        """Return the same grid with rounded points; points that round to the same integer count once."""
        points = (min(int(point.to_integral_value()), most) for point in _powers(least, most, factor))
        return cls(list(dict.fromkeys(points)))

    def at(self, rank: int) -> float:
        return self._points[rank]

    def rank(self, value: float) -> int:
        above = bisect_left(self._points, value)
        if above == 0 or above == self.size:
            return min(above, self.size - 1)
        # Find the nearest in ratio. A product of the two could be too large for a float.
        return above if self._points[above] / value <= value / self._points[above - 1] else above - 1

    def find(self, value: float) -> float | None:
        point = self.at(self.rank(value))
        return point if abs(point - value) <= 1e-9 * abs(point) else None


def steps(least: float, most: float, factor: float) -> int:
    """Return how often `least`, above 0, can be multiplied by `factor`, above 1, without exceeding `most`."""
    return math.floor((math.log(most) - math.log(least)) / math.log(factor) + 1e-9)


def _powers(least: float, most: float, factor: float) -> Iterator[Decimal]:
    point, ratio = Decimal(repr(least)), Decimal(repr(factor))
    for _ in range(steps(least, most, factor) + 1):
        yield point
        point = _EXACT.multiply(point, ratio)
