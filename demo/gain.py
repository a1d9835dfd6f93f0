"""The gain between two settings from interleaved pairs of runs, with an interval that assumes no distribution."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Gain:
    """The saved time as a fraction of the default's time: 0.25 means a quarter less time.

    `low` and `high` enclose the median saving with at least `confidence` (0 to 1).
    """

    default_seconds: float
    best_seconds: float
    estimate: float
    low: float
    high: float
    confidence: float

    @property
    def measurable(self) -> bool:
        """True if the whole interval lies above zero."""
        return self.low > 0.0


def interval_ranks(count: int, confidence: float) -> tuple[int, float]:
    """Return the rank r (from 0) so that the r-th smallest and r-th largest of `count` values enclose their median.

    The number of values below the true median is binomial(count, 1/2) for any distribution: this is the interval of the
    sign test. The second result is the confidence of the interval. It is at least the requested one if `count` is large
    enough (6 values for 95 %). With fewer values the interval is the range of all values, with a lower confidence.
    """
    tail, rank = 0.5**count, 0
    while True:
        wider = tail + math.comb(count, rank + 1) * 0.5**count
        if 1.0 - 2.0 * wider < confidence:
            return rank, 1.0 - 2.0 * tail
        tail, rank = wider, rank + 1


def measure_gain(pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> Gain:
    """Return the gain from (default, best) times in seconds; the two runs of a pair follow each other.

    Both runs of a pair meet the same state of the machine, so the saving is computed for each pair. Raises ValueError
    without pairs.
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
