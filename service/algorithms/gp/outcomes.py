"""Metrics as a Gaussian process can take them: standardised, larger is better, without extremes that drown the rest."""

from __future__ import annotations

import math

import numpy as np

from service.core.encoding import FloatArray

# Offsets of the logarithm, in units of the distance from the best to the median; None: no logarithm. Which suits the
# metric best is for its evidence to say.
OFFSETS: tuple[float | None, ...] = (None, 1.0, 0.1, 0.01)
_FARTHEST = 1e6
_WINSOR = 5.0


def offsets(values: FloatArray) -> tuple[float | None, ...]:
    """Those that can be used for these values, [n], smaller is better."""
    return OFFSETS if np.median(values) > values.min() else (None,)


def standardise(values: FloatArray, offset: float | None) -> tuple[FloatArray, float]:
    """The values, [n] with smaller better, as outcomes with larger better, mean 0 and variance 1 (0 if all are equal).

    With an offset, of the logarithm of their distance to the best plus the offset; without, what is far worse than most
    is brought nearer. Also the logarithm of the derivative of this, summed over the values, to compare evidence by.
    """
    best = values.min()
    # Halved, so that no difference of finite numbers overflows.
    gaps = np.clip(values / 2.0 - best / 2.0, 0.0, None)
    unit = float(np.median(gaps)) or float(gaps.max()) or 1.0
    gaps = np.minimum(gaps / unit, _FARTHEST)
    if offset is None:
        spread = gaps.std()
        jacobian = 0.0
        quarter = float(np.quantile(gaps, 0.75))
        kept = np.minimum(gaps, (1.0 + _WINSOR) * quarter) if quarter > 0.0 else gaps
    else:
        kept = np.log(gaps + offset)
        spread = kept.std()
        jacobian = -float(kept.sum())
    if spread > 0.0:
        jacobian -= len(values) * math.log(spread)
    deviation = kept.std()
    if not deviation > 1e-12:
        return np.zeros_like(kept), jacobian
    return -(kept - kept.mean()) / deviation, jacobian
