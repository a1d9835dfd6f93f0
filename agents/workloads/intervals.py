"""Ratios of measurements that were taken in turns, with their intervals."""

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RESAMPLES = 4000


@dataclass(frozen=True)
class Ratio:
    """A ratio of two medians with its interval of 95 %."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:.3f} ({self.low:.3f} to {self.high:.3f})"

    @property
    def proven(self) -> bool:
        """Return whether the interval excludes 1."""
        return self.low > 1 or self.high < 1


def ratio_of(values: Sequence[float], base: Sequence[float]) -> Ratio:
    """Return the median of `values` divided by that of `base`, from rounds of both in turns, with its interval."""
    return Ratio(_ratio(values, base), *bootstrap(_ratio, values, base))


def bootstrap(
    figure: Callable[[Sequence[float], Sequence[float]], float], first: Sequence[float], second: Sequence[float]
) -> tuple[float, float]:
    """Return the interval of 95 % of a figure from rounds of two series in turns.

    The rounds are drawn with replacement; a round that is drawn counts for both series.
    """
    draws = random.Random(0)
    rounds = range(len(first))
    found = sorted(
        figure([first[place] for place in drawn], [second[place] for place in drawn])
        for drawn in (draws.choices(rounds, k=len(rounds)) for _ in range(RESAMPLES))
    )
    return found[RESAMPLES // 40], found[-RESAMPLES // 40]


def _ratio(values: Sequence[float], base: Sequence[float]) -> float:
    return statistics.median(values) / statistics.median(base)
