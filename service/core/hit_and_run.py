"""Uniform draws from a subset of the unit cube of which only a test is known, and some points: hit-and-run.

A step leads from a feasible point to another one on a random line through it. The line's part that is feasible is not
known, so that the interval shrinks towards the point as long as draws from it are not feasible [neal-2003]. Draws are
uniform after many steps, for linear constraints and others. They are not if the subset has parts between which no line
leads, or corners that a line seldom reaches.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Points that move at the same time.
_POINTS = 256
_STEPS, _STEPS_PER_DIMENSION = 60, 20
_SHRINKS = 60
_FARTHEST = np.nextafter(1.0, 0.0)


class HitAndRun:
    """Draws from the feasible part of the cube, which begin at some feasible points, [n, d]."""

    def __init__(self, holds: Callable[[FloatArray], BoolArray], starts: FloatArray, seed: int) -> None:
        self._holds = holds
        self._dimension = starts.shape[1]
        random = np.random.default_rng(seed)
        points = starts[random.integers(len(starts), size=_POINTS)] if len(starts) < _POINTS else starts[:_POINTS]
        for _ in range(_STEPS + _STEPS_PER_DIMENSION * self._dimension):
            points = self._moved(points, points, [random] * len(points))
        self.points = points

    def draw(self, numbers: FloatArray) -> FloatArray:
        """Return a feasible point, [n, d], for each row of numbers, which is its seed alone."""
        randoms = [seeded_by(row) for row in numbers]
        points = self.points[[int(random.integers(len(self.points))) for random in randoms]]
        for _ in range(2 * self._dimension):
            points = self._moved(points, self.points, randoms)
        return points

    def _moved(self, points: FloatArray, others: FloatArray, randoms: list[np.random.Generator]) -> FloatArray:
        """Return the points after one step each."""
        count, dimension = points.shape
        if randoms and all(one is randoms[0] for one in randoms):
            drawn = randoms[0].random((count, _SHRINKS + 4))
            normal = randoms[0].normal(size=(count, dimension))
        else:
            drawn = np.stack([one.random(_SHRINKS + 4) for one in randoms])
            normal = np.stack([one.normal(size=dimension) for one in randoms])
        # Lines along an axis, in any direction, and between two other points, which suit narrow regions.
        kind = np.floor(drawn[:, 0] * 3)
        axis = np.eye(dimension)[np.floor(drawn[:, 1] * dimension).astype(int)]
        pairs = (drawn[:, 2:4] * len(others)).astype(int)
        between = others[pairs[:, 0]] - others[pairs[:, 1]]
        between = np.where((np.abs(between) > 0.0).any(1, keepdims=True), between, axis)
        direction = np.where((kind == 0)[:, None], axis, np.where((kind == 1)[:, None], normal, between))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([(0.0 - points) / direction, (1.0 - points) / direction])
        ends = np.where(direction == 0.0, np.inf, ends)
        high = np.where(direction == 0.0, np.inf, ends.max(0)).min(1)
        low = np.where(direction == 0.0, -np.inf, ends.min(0)).max(1)
        found, waiting = points.copy(), np.arange(count)
        for turn in range(_SHRINKS):
            step = low[waiting] + drawn[waiting, 4 + turn] * (high - low)[waiting]
            tried = (points[waiting] + step[:, None] * direction[waiting]).clip(0.0, _FARTHEST)
            good = self._holds(tried)
            found[waiting[good]] = tried[good]
            bad = ~good
            waiting, step = waiting[bad], step[bad]
            if not len(waiting):
                break
            high[waiting] = np.where(step > 0.0, step, high[waiting])
            low[waiting] = np.where(step <= 0.0, step, low[waiting])
        return found


def seeded_by(row: FloatArray) -> np.random.Generator:
    """Return a generator that a row of numbers seeds."""
    return np.random.default_rng(int.from_bytes(blake2b(row.tobytes(), digest_size=16).digest(), "big"))
