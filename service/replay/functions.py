"""Standard test functions on grids, as times: the optimum takes ten seconds, the median configuration twenty.

A distance of one per cent is therefore one per cent of the way from the optimum to the median of all configurations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from service.core.encoding import FloatArray


@dataclass(frozen=True)
class Function:
    """A function on a grid with `levels` values on each axis: `compute` turns [dimensions, n] into [n] or [m, n]."""

    name: str
    doc: str
    compute: Callable[[FloatArray], FloatArray]
    bounds: tuple[tuple[float, float], ...]
    levels: int

    def axes(self) -> tuple[FloatArray, ...]:
        """Return the values of each dimension."""
        return tuple(np.linspace(low, high, self.levels).round(12) for low, high in self.bounds)


def as_seconds(values: FloatArray) -> FloatArray:
    """Return the values, [n], as times: the least becomes 10, the median 20."""
    return np.asarray(10 * (1 + (values - values.min()) / (np.median(values) - values.min())))


def _branin(x: FloatArray) -> FloatArray:
    a, b = x
    bend = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return np.asarray(bend**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(a) + 10)


_WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
_SCALES = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_CENTRES = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def _hartmann(x: FloatArray) -> FloatArray:
    hills = [
        weight * np.exp(-(scales[:, None] * (x - centre[:, None]) ** 2).sum(axis=0))
        for weight, scales, centre in zip(_WEIGHTS, _SCALES, _CENTRES, strict=True)
    ]
    return np.asarray(-sum(hills))


def _ackley(x: FloatArray) -> FloatArray:
    radius, waves = np.sqrt((x**2).mean(axis=0)), np.cos(2 * math.pi * x).mean(axis=0)
    return np.asarray(20 + math.e - 20 * np.exp(-0.2 * radius) - np.exp(waves))


def _rosenbrock(x: FloatArray) -> FloatArray:
    return np.asarray(sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(x)))


def _levy(x: FloatArray) -> FloatArray:
    w = 1 + (x - 1) / 4
    middle = ((w[:-1] - 1) ** 2 * (1 + 10 * np.sin(math.pi * w[:-1] + 1) ** 2)).sum(axis=0)
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * math.pi * w[-1]) ** 2)
    return np.asarray(np.sin(math.pi * w[0]) ** 2 + middle + last)


def _rastrigin(x: FloatArray) -> FloatArray:
    return np.asarray((x**2 - 10 * np.cos(2 * math.pi * x) + 10).sum(axis=0))


def _styblinski(x: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (x**4 - 16 * x**2 + 5 * x).sum(axis=0))


def _zdt(shape: Callable[[FloatArray, FloatArray], FloatArray]) -> Callable[[FloatArray], FloatArray]:
    """Return a ZDT function [zitzler-2000], whose front is where all variables but the first are 0."""

    def compute(x: FloatArray) -> FloatArray:
        first, others = x[0], 1 + 9 * x[1:].mean(axis=0)
        return np.stack([first, others * shape(first / others, first)])

    return compute


def _dtlz2(x: FloatArray) -> FloatArray:
    """Return DTLZ2 [deb-2002b] with two objectives, whose front is a quarter of a circle."""
    others = 1 + ((x[1:] - 0.5) ** 2).sum(axis=0)
    return np.stack([others * np.cos(x[0] * math.pi / 2), others * np.sin(x[0] * math.pi / 2)])


# No optimum is at the centre of its bounds, because many algorithms start there.
FUNCTIONS: Mapping[str, Function] = {
    function.name: function
    for function in (
        Function("branin", "Two dimensions, three optima.", _branin, ((-5, 10), (0, 15)), 31),
        Function("hartmann", "Six dimensions, few of which matter at once.", _hartmann, ((0, 1),) * 6, 6),
        Function("ackley", "A funnel among many small dents, four dimensions.", _ackley, ((-5, 10),) * 4, 11),
        Function("rosenbrock", "A bent valley in four dimensions.", _rosenbrock, ((-5, 10),) * 4, 11),
        Function("levy", "Waves on a slope, four dimensions.", _levy, ((-9, 10),) * 4, 11),
        Function("rastrigin", "Many dents in a bowl, three dimensions.", _rastrigin, ((-4, 5),) * 3, 19),
        Function("styblinski", "Sixteen basins, one of them deepest.", _styblinski, ((-5, 5),) * 4, 11),
    )
}  # fmt: skip
TWO_OBJECTIVES: Mapping[str, Function] = {
    function.name: function
    for function in (
        Function("zdt1", "A convex front.", _zdt(lambda ratio, first: 1 - np.sqrt(ratio)), ((0, 1),) * 4, 21),
        Function("zdt2", "A concave front.", _zdt(lambda ratio, first: 1 - ratio**2), ((0, 1),) * 4, 21),
        Function(
            "zdt3",
            "A front in pieces.",
            _zdt(lambda ratio, first: 1 - np.sqrt(ratio) - ratio * np.sin(10 * math.pi * first)),
            ((0, 1),) * 4,
            21,
        ),
        Function("dtlz2", "A front that is a quarter of a circle.", _dtlz2, ((0, 1),) * 4, 21),
    )
}
