"""Bootstrap intervals of what a number of runs say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Statistic = Callable[..., NDArray[np.float64]]
RESAMPLES = 10_000


@dataclass(frozen=True)
class Interval:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def text(self, digits: int = 1) -> str:
        """Return the figure and the interval as text, such as `1.6 (1.0 to 2.3)`."""
        return f"{self.value:.{digits}f} ({self.low:.{digits}f} to {self.high:.{digits}f})"


def bootstrap(values: Sequence[float], statistic: Statistic = np.mean, seed: int = 0) -> Interval:
    """Return a statistic of independent values with its percentile interval; `statistic` takes an `axis`."""
    given = np.asarray(values, dtype=np.float64)
    drawn = given[np.random.default_rng(seed).integers(len(given), size=(RESAMPLES, len(given)))]
    low, high = np.quantile(statistic(drawn, axis=1), (0.025, 0.975))
    return Interval(float(statistic(given, axis=0)), float(low), float(high))
