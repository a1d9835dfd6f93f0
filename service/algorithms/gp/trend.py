"""The results of an earlier study as part of a process's mean.

The earlier study has a process of its own, on its own scale. Its posterior mean, times a slope, is added to the
constant mean of the new study's process, whose kernel then describes only the difference. Both scales have a unit
variance, so a slope of 1 is expected, as long as few measurements say otherwise. A slope is never negative: where the
earlier study was better, the new one is not expected to be worse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpytorch.means import Mean
from torch import Tensor

from service.algorithms.gp.posterior import Posterior
from service.algorithms.gp.runs import Runs
from service.core.encoding import FloatArray

# The slope that is expected, and the number of measurements, spread over the unit variance, as which it counts.
_SLOPE, _WEIGHT = 1.0, 1.0


@dataclass(frozen=True)
class Source:
    """The knowledge from an earlier study: its runs as encoded rows of the new space, and its posterior.

    `name`: the name of the study. `key`: a text that differs whenever `posterior` could differ.
    """

    name: str
    key: str
    runs: Runs
    posterior: Posterior

    def expected(self, rows: FloatArray) -> FloatArray:
        """Return the mean, [b], at b rows, on the scale of the earlier study."""
        return self.posterior.predict(rows)[0]

    def trend(self, runs: Runs, outcomes: FloatArray) -> Trend:
        """Return the trend for runs with these outcomes, [n]."""
        expected, measured = self.expected(runs.rows), ~runs.bounded
        x = expected[measured] - expected[measured].mean()
        y = outcomes[measured] - outcomes[measured].mean()
        slope = max(float((x @ y + _WEIGHT * _SLOPE) / (x @ x + _WEIGHT)), 0.0)
        price = 0.5 * (math.log1p(x @ x / _WEIGHT) + _WEIGHT * (slope - _SLOPE) ** 2)
        return Trend(self, slope, slope * expected, price)


@dataclass(frozen=True)
class Trend:
    """The posterior mean of a source, times a slope.

    `values`: [n], at the rows of the runs that gave the slope. `price`: the log evidence that the choice of the slope
    has to gain.
    """

    source: Source
    slope: float
    values: FloatArray
    price: float

    def at(self, rows: FloatArray) -> FloatArray:
        """Return the values, [b], at b rows."""
        return self.slope * self.source.expected(rows)


class Trended(Mean):  # type: ignore[misc] # GPyTorch has no types.
    """A constant plus a trend, as a mean of GPyTorch."""

    def __init__(self, constant: float, trend: Trend) -> None:
        super().__init__()
        self._constant, self._trend = constant, trend

    def forward(self, rows: Tensor) -> Tensor:
        """Return the mean, [..., b], at b rows."""
        flat = self._trend.source.posterior.mean(rows.reshape(-1, rows.shape[-1]))
        return self._constant + self._trend.slope * flat.reshape(rows.shape[:-1])
