"""The detection of drift: a configuration that was measured often begins to have other values.

The test is Page and Hinkley's [page-1954], a cumulative sum in both directions: each value is compared with the
mean and the deviation of the values before it, except for the latest ones. Under normal noise these residuals have
Student's distribution. They are turned into quantiles of the standard normal one, so that the rate of false alarms does
not depend on the system.

A value's residual is limited, so that one disturbed run is no drift. These shares were measured on 400 simulated series
for each row, with 3 % of noise and a shift of two standard deviations (`tests/unit/policies/test_drift.py` repeats a
part of it). The last column is the share of series with an alarm after a single run that was half as slow again.

| values before | alarm within 5 values | within 10 | false alarm in 200 | one disturbed run |
| --- | --- | --- | --- | --- |
| 10 | 68 % | 86 % | 39 % | 6 % |
| 20 | 74 % | 90 % | 40 % | 13 % |
| 40 | 79 % | 88 % | 44 % | 17 % |

A false alarm costs six trials, and a shift that is not found costs wrong settings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# The shift that is detected fastest is twice the allowance, in standard deviations of one value.
ALLOWANCE = 1.0
THRESHOLD = 2.5
# The first values only say what is usual.
LEAST = 10
# The latest values do not say what is usual: otherwise a shift would soon count as usual.
LAG = 5
# A single disturbed run must not look like drift.
_LARGEST = 2.5


def residuals(values: Sequence[float]) -> list[float]:
    """Return the residual of each value after the first `LEAST`: a standard normal deviate if nothing has changed.

    Values of one sign are compared by their logarithms, because noise grows with them.
    """
    found = np.asarray(values, dtype=np.float64)
    if len(found) <= LEAST:
        return []
    # It is imported on first use, because it makes up much of the start of a process that may never need it.
    from scipy.special import ndtri, stdtr

    if (found > 0.0).all() or (found < 0.0).all():
        found = np.log(np.abs(found))
    places = np.arange(LEAST, len(found))
    counts = np.maximum(places - LAG, LEAST)
    # Relative to the first value, so that the sums of squares are exact enough.
    own = found - found[0]
    means = np.cumsum(own)[counts - 1] / counts
    squares = np.cumsum(own**2)[counts - 1] - counts * means**2
    deviations = np.sqrt(np.maximum(squares, 0.0) / (counts - 1))
    off = own[places] - means
    # Values without any noise: each difference is one.
    deviations = np.maximum(deviations, 1e-9 * max(float(np.abs(found).max()), 1e-300))
    ratios = off / (deviations * np.sqrt(1.0 + 1.0 / counts))
    # The distribution functions are taken at negative values, where their tails are exact.
    quantiles = -ndtri(stdtr(counts - 1, -np.abs(ratios)))
    return np.copysign(np.minimum(quantiles, _LARGEST), ratios).tolist()  # type: ignore[no-any-return]


def alarm(values: Sequence[float]) -> int | None:
    """Return the place of the value at which drift is found; None if there is none.

    `values`: of one configuration, in the order of their measurement.
    """
    above = below = 0.0
    for place, residual in enumerate(residuals(values), LEAST):
        above = max(0.0, above + residual - ALLOWANCE)
        below = max(0.0, below - residual - ALLOWANCE)
        if max(above, below) > THRESHOLD:
            return place
    return None
