"""Pairs of blocks of a live trial: the coin of their order, and a test that may be looked at after each pair.

Standard library only. A pair has a block with the candidate's settings and one with the incumbent's, in the order that
a fair coin has decided. Its value is the difference of their mean logarithms of the objective, turned so that below 0
is better. If the effect is a constant t, the sign of (value - t) is fair given its size and all earlier pairs, whatever
drift, autocorrelation or heavy tails the load has. Therefore

    E_n(t) = mean over lambda of prod_{k<=n} exp(lambda (e_k - t)) / cosh(lambda (e_k - t))

is a martingale with mean 1, and it reaches 1/a at any look with a probability of at most a (Ville's inequality).
"""

import hashlib
import math
import statistics
from collections.abc import Callable
from typing import Literal, TypeAlias

Side: TypeAlias = Literal["above", "below"]
Decision: TypeAlias = Literal["keep", "harm", "futile", "most", ""]

# The bets, as multiples of 1/deviation: effects that are small or large compared with the deviation of a pair.
BETS = (0.25, 0.5, 1.0, 2.0, 4.0)
LEVEL = 0.05
# One-sided evidence for a loss that ends a trial.
HARM = 5.0
# Pairs that only tell the deviation if it is not known before.
LEARNING = 2
# A deviation of 0, from readings that never change, would leave no bet.
LEAST_DEVIATION = 1e-4
# The largest share of production jobs that may get a candidate.
MOST_EXPLORED = 0.1
# Precision of a bound, as a multiple of the deviation.
_PRECISION = 1e-4


def candidate_first(seed: str, pair: int) -> bool:
    """Return whether the candidate comes first in a pair; pairs are numbered from 1."""
    return bool(hashlib.sha256(f"{seed}:{pair}".encode()).digest()[-1] & 1)


def commitment(seed: str) -> str:
    """Return what is published before a trial, so that anybody can check its coins when the seed is revealed."""
    return hashlib.sha256(seed.encode()).hexdigest()


class Evidence:
    """The evidence of the pairs of one trial about a constant effect (below 0 is better)."""

    def __init__(self, deviation: float = 0.0) -> None:
        """`deviation` is that of a pair in earlier trials. If it is 0, the first `LEARNING` pairs tell it.

        They are then no evidence, because the bets must not depend on the pairs on which they are made.
        """
        if not (math.isfinite(deviation) and deviation >= 0):
            raise ValueError(f"the deviation of a pair is {deviation!r}. Use 0 or a positive number")
        self._deviation = max(deviation, LEAST_DEVIATION) if deviation else 0.0
        self._learned: list[float] = []
        self._values: list[float] = []
        # By level: how many pairs were looked at, and the bounds that are left.
        self._bounds: dict[float, tuple[int, float, float]] = {}

    @property
    def pairs(self) -> int:
        """The number of pairs, with those that are no evidence."""
        return len(self._learned) + len(self._values)

    @property
    def deviation(self) -> float:
        """The deviation of a pair on which the bets are made; 0 if it is not known yet."""
        return self._deviation

    @property
    def spread(self) -> float:
        """The deviation of all pairs; 0 with fewer than 2. Later trials may use it."""
        values = [*self._learned, *self._values]
        return statistics.stdev(values) if len(values) > 1 else 0.0

    @property
    def effect(self) -> float:
        """The value against which the pairs say as much from above as from below; 0 without pairs.

        In contrast to a mean, one extreme pair does not move it far. It lies in the interval.
        """
        if not self._values:
            return statistics.fmean(self._learned) if self._learned else 0.0
        count = len(self._values)

        def is_low(value: float) -> bool:
            return self._log_evidence(value, "above", count) >= self._log_evidence(value, "below", count)

        low, high = self.interval()
        return min(high, max(low, _last(is_low, min(self._values), max(self._values), self._precision)))

    def add(self, value: float) -> None:
        """Add the value of the next pair.

        Raises:
            ValueError: it is not a finite number.
        """
        if not math.isfinite(value):
            raise ValueError(f"the value of a pair is {value!r}, which is not a finite number")
        if self._deviation:
            self._values.append(value)
            return
        self._learned.append(value)
        if len(self._learned) == LEARNING:
            # The deviation of so few values may be close to 0 by chance, and their size then tells more.
            size = statistics.fmean(abs(one) for one in self._learned) / 2
            self._deviation = max(statistics.stdev(self._learned), size, LEAST_DEVIATION)

    def against(self, value: float, side: Side) -> float:
        """Return the evidence at this look that the effect is above, or below, `value`.

        It reaches 1/a at any look with a probability of at most a if the effect is not.
        """
        return math.exp(min(700.0, self._log_evidence(value, side, len(self._values))))

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the interval that contains the effect at all looks with a probability of at least 1 - level.

        It contains all values with E_n < 1/level at each look so far. A bound is infinite while nothing is excluded on
        its side. If no value is left, the effect is not constant, and the interval begins again at that look.
        """
        seen, low, high = self._bounds.get(level, (0, -math.inf, math.inf))
        for count in range(seen + 1, len(self._values) + 1):
            now = self._bound(level, "above", count, low), self._bound(level, "below", count, high)
            low, high = max(low, now[0]), min(high, now[1])
            if low > high:
                low, high = (self._bound(level, side, count, None) for side in ("above", "below"))
        self._bounds[level] = len(self._values), low, high
        return low, high

    def decide(self, min_gain: float, least: int, most: int) -> Decision:
        """Return how the trial ends after this pair; "" if it goes on.

        Args:
            min_gain: the least gain worth keeping, as a share, such as 0.03.
            least: pairs before which nothing is kept.
            most: pairs after which the trial ends in any case.
        """
        wanted = math.log1p(-min_gain)
        low, high = self.interval()
        if high < 0 and self.pairs >= least and (low + high) / 2 <= wanted:
            return "keep"
        if self.against(0.0, "above") >= HARM:
            return "harm"
        if low > wanted:
            return "futile"
        return "most" if self.pairs >= most else ""

    @property
    def _precision(self) -> float:
        return _PRECISION * self._deviation

    def _log_evidence(self, value: float, side: Side, count: int) -> float:
        """Return the logarithm of the one-sided E of the first `count` pairs."""
        sign = 1.0 if side == "above" else -1.0
        excess = [sign * (one - value) / self._deviation for one in self._values[:count]]
        logs = [sum(_log_bet(bet * one) for one in excess) for bet in BETS]
        top = max(logs)
        return top + math.log(sum(math.exp(one - top) for one in logs) / len(BETS))

    def _bound(self, level: float, side: Side, count: int, known: float | None) -> float:
        """Return the bound that the first `count` pairs give on one side, or `known` if they exclude no more.

        E_n is the mean of the two one-sided ones, each of which is monotone in the value. A value is excluded if one of
        them alone is large enough, so that what is left is always an interval.
        """
        enough = math.log(2 / level)
        sign = 1.0 if side == "above" else -1.0
        if count * math.log(2) <= enough:
            return -sign * math.inf if known is None else known
        if known is not None and math.isfinite(known):
            inside = known + sign * self._precision
            if self._log_evidence(inside, side, count) < enough:
                return known
        values = [sign * one for one in self._values[:count]]
        step, begin = self._deviation, min(values)

        def is_excluded(value: float) -> bool:
            return self._log_evidence(sign * value, side, count) >= enough

        while not is_excluded(begin):
            begin, step = begin - step, 2 * step
        return sign * _last(is_excluded, begin, max(values), self._precision)


def _log_bet(excess: float) -> float:
    """Return log(exp(x) / cosh(x)), also for large x."""
    return math.log(2) + min(0.0, 2 * excess) - math.log1p(math.exp(-2 * abs(excess)))


def _last(holds: Callable[[float], bool], begin: float, end: float, precision: float) -> float:
    """Return the last value, from `begin`, at which a condition holds that holds up to some value."""
    while end - begin > precision:
        middle = (begin + end) / 2
        if not begin < middle < end:
            break
        begin, end = (middle, end) if holds(middle) else (begin, middle)
    return begin
