"""The transformation of metrics for a Gaussian process: standardised, larger is better, without dominant extremes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from service.core.encoding import FloatArray
from service.core.penalties import cap_of

# Offsets of the logarithm, in units of the distance from the best to the median; None: no logarithm. The evidence
# selects the one that suits the metric best.
OFFSETS: tuple[float | None, ...] = (None, 1.0, 0.1, 0.01)
# The best of noisy values is a lucky one. A small offset would stretch the distances to it, and noise with them.
_OFFSETS_WITH_NOISE = OFFSETS[:2]
_FARTHEST = 1e6
_WINSOR = 5.0
_LEAST_UNIT = 1e-3


def offsets(values: FloatArray, *, noisy: bool) -> tuple[float | None, ...]:
    """Return the offsets that can be used for these values, [n]; smaller is better."""
    if np.median(values) <= values.min():
        return (None,)
    return _OFFSETS_WITH_NOISE if noisy else OFFSETS


@dataclass(frozen=True)
class Scale:
    """A monotone transformation from values (smaller is better) to outcomes (larger is better), and its inverse.

    With an `offset` it is linear in the logarithm of the value's distance to `best` plus the offset, in units of
    `unit`. Without one it is linear in the distance itself. Distances are limited to `farthest`.
    """

    best: float
    unit: float
    offset: float | None
    farthest: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: FloatArray, offset: float | None, *, whole: bool = False) -> tuple[Scale, float]:
        """Return the scale on which these values, [n], have mean 0 and variance 1, and a log derivative.

        The logarithm of the scale's derivative is summed over the values, up to a constant for all offsets, and serves
        to compare evidence. All penalties (`core.penalties`) are equal on the scale, except on the `whole` one.
        """
        best = float(values.min())
        cap = None if whole else cap_of(values)
        values = values if cap is None else np.minimum(values, cap)
        # Halved, so that no difference of finite numbers overflows.
        gaps = np.clip(values / 2.0 - best / 2.0, 0.0, None)
        # If most values are close to the best, their distance is not a suitable unit for the others.
        unit = max(float(np.median(gaps)), _LEAST_UNIT * float(np.quantile(gaps, 0.9))) or float(gaps.max()) or 1.0
        gaps = np.minimum(gaps / unit, _FARTHEST)
        farthest = _FARTHEST if cap is None else float(gaps.max())
        if offset is None:
            spread = gaps.std()
            jacobian = 0.0
            quarter = float(np.quantile(gaps, 0.75))
            if quarter > 0.0:
                farthest = min((1.0 + _WINSOR) * quarter, farthest)
            kept = np.minimum(gaps, farthest)
        else:
            kept = np.log(gaps + offset)
            spread = kept.std()
            jacobian = -float(kept.sum())
        if spread > 0.0:
            jacobian -= len(values) * math.log(spread)
        deviation = float(kept.std())
        return cls(best, unit, offset, farthest, float(kept.mean()), deviation if deviation > 1e-12 else 0.0), jacobian

    def apply(self, values: FloatArray) -> FloatArray:
        """Return the outcomes for values."""
        gaps = np.minimum(self.distances(values), self.farthest)
        if self.deviation == 0.0:
            return np.zeros(len(values))
        kept = gaps if self.offset is None else np.log(np.maximum(gaps, 0.0) + self.offset)
        return np.asarray(-(kept - self.mean) / self.deviation)

    def distances(self, values: FloatArray) -> FloatArray:
        """Return the distances from `best`, in units of `unit`."""
        return np.asarray((values / 2.0 - self.best / 2.0) / self.unit)

    def gaps(self, outcomes: FloatArray) -> FloatArray:
        """Return the distances for outcomes."""
        kept = self.mean - outcomes * self.deviation
        # Outside the measured range, the inverse of the logarithm is unbounded.
        return kept if self.offset is None else np.exp(np.minimum(kept, math.log(_FARTHEST))) - self.offset

    def restore(self, outcomes: FloatArray, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the medians and the standard deviations of values whose outcomes are normal.

        The deviations are correct to first order, because they are small where it matters.
        """
        gaps = self.gaps(outcomes)
        slope = self.deviation * (1.0 if self.offset is None else np.maximum(gaps + self.offset, 0.0))
        return self.best + 2.0 * self.unit * gaps, 2.0 * self.unit * slope * deviations


# The values themselves, but with larger ones better.
NEGATED = Scale(best=0.0, unit=0.5, offset=None, farthest=math.inf, mean=0.0, deviation=1.0)
