"""The detection of drift: a configuration that was measured often begins to have other values.

Each value is compared with the mean and the deviation of the values before it, except for the latest ones. Under normal
noise these residuals have Student's distribution. They are turned into quantiles of the standard normal one, so that
the rate of false alarms does not depend on the system, and limited, so that one disturbed run is no drift. What a value
has beyond the limit does not count for the mean and the deviation either.

The test is an e-detector [shin-2024] of Shiryaev and Roberts' kind. A bet on a shift multiplies its capital with each
value by a factor whose mean is 1 without drift, and a new unit of capital starts with each value. Without drift, the
mean capital after n values is n. So it reaches `CAPITAL` within n values with a probability of at most n / `CAPITAL`,
which is 7 % in 200 values, if the noise is normal and the values before tell its mean and deviation.

`tests/benchmarks/drifts.py` measures the rates; docs/explanation/context.md has its table. A false alarm costs six
trials, and a shift that is not found costs wrong settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from service.policies.noise import MAD

FloatArray = npt.NDArray[np.float64]
# The mean capital of the bets at which there is an alarm.
CAPITAL = 3000.0
# The shifts on which is bet, up and down, in standard deviations of one value.
BETS = (1.0, 1.5, 2.0, 3.0)
# The first values only say what is usual.
LEAST = 10
# The latest values do not say what is usual: otherwise a shift would soon count as usual.
LAG = 5
# A single disturbed run must not look like drift, nor change what is usual.
_LARGEST = 2.5
# The same for the first values, in deviations by their median distance from the median.
_FIRST = 4.0


def residuals(values: Sequence[float]) -> list[float]:
    """Return the residual of each value after the first `LEAST`: a standard normal deviate if nothing has changed.

    Values of one sign are compared by their logarithms, because noise grows with them.
    """
    found = np.asarray(values, dtype=np.float64)
    if len(found) <= LEAST:
        return []
    # It is imported on first use, because it makes up much of the start of a process that may never need it.
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    if (found > 0.0).all() or (found < 0.0).all():
        found = np.log(np.abs(found))
    # Relative to a usual value, so that the sums of squares are exact enough.
    own = found - np.median(found[:LEAST])
    spread = MAD * float(np.median(np.abs(own[:LEAST])))
    if spread > 0.0:
        own[:LEAST] = own[:LEAST].clip(-_FIRST * spread, _FIRST * spread)
    counts = np.arange(len(own))
    limits = stdtrit(np.maximum(counts - 1, 1), ndtr(_LARGEST))
    # Values without any noise: each difference is one.
    least = 1e-9 * max(float(np.abs(found).max()), 1e-300)
    # Sums of the values that say what is usual, and of their squares, by the number of values.
    sums = np.concatenate([[0.0], np.cumsum(own[:LEAST]), np.zeros(len(own) - LEAST)])
    squares = np.concatenate([[0.0], np.cumsum(own[:LEAST] ** 2), np.zeros(len(own) - LEAST)])
    residuals = []
    for place in range(LEAST, len(own)):
        count = max(place - LAG, LEAST)
        mean = sums[count] / count
        deviation = max(math.sqrt(max(squares[count] - count * mean**2, 0.0) / (count - 1)), least)
        unit = deviation * math.sqrt(1.0 + 1.0 / count)
        ratio = (own[place] - mean) / unit
        # The distribution functions are taken at negative values, where their tails are exact.
        residual = math.copysign(min(-float(ndtri(stdtr(count - 1, -abs(ratio)))), _LARGEST), ratio)
        residuals.append(residual)
        usual = mean + unit * min(max(ratio, -limits[count]), limits[count])
        sums[place + 1] = sums[place] + usual
        squares[place + 1] = squares[place] + usual**2
    return residuals


def alarm(values: Sequence[float]) -> int | None:
    """Return the place of the value at which drift is found; None if there is none.

    `values`: of one configuration, in the order of their measurement.
    """
    found = residuals(values)
    if not found:
        return None
    shifts, log_means = _bets()
    capital = np.zeros_like(shifts)
    for place, residual in enumerate(found, LEAST):
        capital = (capital + 1.0) * np.exp(shifts * residual - log_means)
        if capital.mean() >= CAPITAL:
            return place
    return None


@cache
def _bets() -> tuple[FloatArray, FloatArray]:
    """Return the shifts s on which is bet, and log E[exp(s z)] for a limited normal deviate z without drift."""
    from scipy.special import ndtr

    shifts = np.array([sign * one for one in BETS for sign in (1.0, -1.0)])
    inside = np.exp(shifts**2 / 2) * (ndtr(_LARGEST - shifts) - ndtr(-_LARGEST - shifts))
    beyond = 2 * ndtr(-_LARGEST) * np.cosh(_LARGEST * shifts)
    return shifts, np.log(inside + beyond)
