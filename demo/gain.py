"""How much faster one of two settings is, from interleaved pairs of runs; its interval assumes no distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Gain:
    """The saving of time against the default, as shares of the default's time: 0.25 is a quarter less time.

    `low` and `high` enclose the median saving with at least `confidence` (a share, 0 to 1).
    """

    default_seconds: float
    best_seconds: float
    estimate: float
    low: float
    high: float
    confidence: float

    @property
    def measurable(self) -> bool:
        """Whether the whole interval lies above no gain."""
        return self.low > 0.0


def interval_ranks(count: int, confidence: float) -> tuple[int, float]:
    """The rank r (from 0) so that the r-th smallest and r-th largest of `count` values enclose their median.

    The number of values below the true median is binomial(count, 1/2), whatever the values' distribution: the interval
    of the sign test. Answers r and the confidence that it has, which is at least the one asked for where `count`
    allows it (6 values for 95 %); with fewer, the range of all values and its lower confidence.
    """
    tail, rank = 0.5**count, 0
    while True:
        wider = tail + math.comb(count, rank + 1) * 0.5**count
        if 1.0 - 2.0 * wider < confidence:
            return rank, 1.0 - 2.0 * tail
        tail, rank = wider, rank + 1


def measure_gain(pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> Gain:
    """The gain from (default, best) times in seconds, each pair measured one right after the other.

    A pair's two runs meet the same state of the machine, so the saving is taken pair by pair. Raises ValueError
    without a pair.
    """
    if not pairs:
        raise ValueError("a gain needs at least one pair of runs")
    savings = sorted(1.0 - best / default for default, best in pairs)
    rank, reached = interval_ranks(len(savings), confidence)
    return Gain(
        default_seconds=median(default for default, _ in pairs),
        best_seconds=median(best for _, best in pairs),
        estimate=median(savings),
        low=savings[rank],
        high=savings[-1 - rank],
        confidence=reached,
    )
