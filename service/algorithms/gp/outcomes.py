"""Metrics as a Gaussian process can take them: standardised, larger is better, without extremes that drown the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from service.core.encoding import FloatArray

# Offsets of the logarithm, in units of the distance from the best to the median; None: no logarithm. Which suits the
# metric best is for its evidence to say.
OFFSETS: tuple[float | None, ...] = (None, 1.0, 0.1, 0.01)
_FARTHEST = 1e6
_WINSOR = 5.0
_LEAST_UNIT = 1e-3


def offsets(values: FloatArray) -> tuple[float | None, ...]:
    """Those that can be used for these values, [n], smaller is better."""
    return OFFSETS if np.median(values) > values.min() else (None,)


@dataclass(frozen=True)
class Scale:
    """A monotone transformation of values, smaller being better, to outcomes, larger being better, and back.

    With an `offset`, it is linear in the logarithm of a value's distance to `best` plus the offset, in units of `unit`;
    without, in the distance itself, which counts as no more than `farthest`.
    """

    best: float
    unit: float
    offset: float | None
    farthest: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, values: FloatArray, offset: float | None) -> tuple[Scale, float]:
        """The scale on which these values, [n], have mean 0 and variance 1.

        Also the logarithm of its derivative, summed over the values, up to what is the same for all offsets: to compare
        evidence by.
        """
        best = float(values.min())
        # Halved, so that no difference of finite numbers overflows.
        gaps = np.clip(values / 2.0 - best / 2.0, 0.0, None)
        # Where most values are next to the best, their distance is no measure for the others'.
        unit = max(float(np.median(gaps)), _LEAST_UNIT * float(np.quantile(gaps, 0.9))) or float(gaps.max()) or 1.0
        gaps = np.minimum(gaps / unit, _FARTHEST)
        farthest = _FARTHEST
        if offset is None:
            spread = gaps.std()
            jacobian = 0.0
            quarter = float(np.quantile(gaps, 0.75))
            if quarter > 0.0:
                farthest = min((1.0 + _WINSOR) * quarter, _FARTHEST)
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
        """Outcomes for values."""
        gaps = np.minimum(self.distances(values), self.farthest)
        if self.deviation == 0.0:
            return np.zeros(len(values))
        kept = gaps if self.offset is None else np.log(np.maximum(gaps, 0.0) + self.offset)
        return np.asarray(-(kept - self.mean) / self.deviation)

    def distances(self, values: FloatArray) -> FloatArray:
        """From `best`, in units of `unit`."""
        return np.asarray((values / 2.0 - self.best / 2.0) / self.unit)

    def gaps(self, outcomes: FloatArray) -> FloatArray:
        """Distances for outcomes."""
        kept = self.mean - outcomes * self.deviation
        # Beyond what was measured, a logarithm's inverse knows no bounds.
        return kept if self.offset is None else np.exp(np.minimum(kept, math.log(_FARTHEST))) - self.offset

    def restore(self, outcomes: FloatArray, deviations: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Medians of the values whose outcomes are normal with these means and deviations, and values' deviations.

        To first order: deviations are small where it matters.
        """
        gaps = self.gaps(outcomes)
        slope = self.deviation * (1.0 if self.offset is None else np.maximum(gaps + self.offset, 0.0))
        return self.best + 2.0 * self.unit * gaps, 2.0 * self.unit * slope * deviations


# Values as they are, but larger being better.
NEGATED = Scale(best=0.0, unit=0.5, offset=None, farthest=math.inf, mean=0.0, deviation=1.0)
