"""Estimates over replicates, beliefs about configurations that are robust against outliers, and intervals of gains.

All values are times their objective's sign: smaller is better.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

import numpy as np
import numpy.typing as npt

from service.core.errors import InvalidInput, JsonValue
from service.core.metrics import LARGEST
from service.core.options import Option, complete
from service.core.penalties import cap_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
# The standard deviation of a normal distribution, in units of the median absolute deviation.
MAD = 1.4826

# A function of values in ascending order, [n], of their weights, which sum to 1, and of options.
Estimate = Callable[[FloatArray, FloatArray, Mapping[str, object]], float]


@dataclass(frozen=True)
class Estimator:
    """A way to reduce several values of one configuration to one."""

    name: str
    doc: str
    estimate: Estimate
    options: tuple[Option, ...] = ()


# This option is common to all estimators. With zero, each configuration is estimated separately.
_NEIGHBOURS = Option(
    "neighbours",
    "float",
    0.0,
    "Distance at which a neighbour weighs 61 % in an average, as a share of the space's diagonal (0: no average).",
    min=0.0,
    max=1.0,
)


def _mean(values: FloatArray, weights: FloatArray, options: Mapping[str, object]) -> float:
    return float(weights @ values)


def _median(values: FloatArray, weights: FloatArray, options: Mapping[str, object]) -> float:
    return _weighted_quantile(values, weights, 0.5)


def _trimmed_mean(values: FloatArray, weights: FloatArray, options: Mapping[str, object]) -> float:
    share = _number(options, "share")
    ends = np.concatenate([[0.0], np.cumsum(weights)]).clip(share, 1 - share)
    return float(np.diff(ends) @ values) / (1 - 2 * share)


def _quantile(values: FloatArray, weights: FloatArray, options: Mapping[str, object]) -> float:
    return _weighted_quantile(values, weights, _number(options, "q"))


def _minimum(values: FloatArray, weights: FloatArray, options: Mapping[str, object]) -> float:
    return float(values[0])


_ESTIMATORS = {
    estimator.name: estimator
    for estimator in (
        Estimator("median", "The middle value, which rare slow runs do not change.", _median, (_NEIGHBOURS,)),
        Estimator("mean", "The average, which determines the total of many runs.", _mean, (_NEIGHBOURS,)),
        Estimator(
            "trimmed_mean",
            "The average without the lowest and the highest values.",
            _trimmed_mean,
            (
                Option("share", "float", 0.2, "Share of the values to leave out at each end.", min=0.0, max=0.49),
                _NEIGHBOURS,
            ),
        ),
        Estimator(
            "quantile",
            "The value that a share of the runs reaches; 0.9 is cautious.",
            _quantile,
            (Option("q", "float", 0.9, "Share of the runs that reach the value.", min=0.0, max=1.0), _NEIGHBOURS),
        ),
        Estimator("minimum", "The best value, for noise that only slows runs down.", _minimum, (_NEIGHBOURS,)),
    )
}


def names() -> tuple[str, ...]:
    """Return the names of all estimators."""
    return tuple(_ESTIMATORS)


def describe(name: str, where: str = "estimator") -> Estimator:
    """Return the estimator of that name. Raises InvalidInput (`<where>.name`)."""
    if name not in _ESTIMATORS:
        raise InvalidInput(f"{where}.name", name, "one of " + ", ".join(_ESTIMATORS))
    return _ESTIMATORS[name]


def validate(name: str, options: Mapping[str, object], where: str = "estimator") -> dict[str, JsonValue]:
    """Return all options of an estimator. Raises InvalidInput (`<where>.name`, `<where>.options.<option>`)."""
    return complete(name, describe(name, where).options, options, f"{where}.options")


def estimate(
    name: str, values: Sequence[float], options: Mapping[str, object], at_least: Sequence[float] = ()
) -> float:
    """Return one value for the values of one configuration; `options` are those of `validate`.

    `at_least`: bounds from runs that were stopped early, whose values would have been at least as large. They count as
    in the estimate of [kaplan-1958], the survival analysis that [robert-2021, section 9.3.2] proposes. A configuration
    would look better than it is if such runs were left out or their bounds counted as values.
    """
    if len(values) == 1 and not at_least:
        return float(values[0])
    return _ESTIMATORS[name].estimate(*_survival(values, at_least), options)


def _survival(values: Sequence[float], at_least: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return ascending values and their weights. The mass beyond the last value is at the largest bound."""
    points = np.concatenate([np.asarray(values, float), np.asarray(at_least, float)])
    bound = np.arange(len(points)) >= len(values)
    order = np.lexsort((bound, points))
    points, bound = points[order], bound[order]
    # The last observation counts as a value even if it is a bound, so that the weights sum to 1 [efron-1967].
    bound[-1] = False
    at_risk = np.arange(len(points), 0, -1)
    surviving = np.concatenate([[1.0], np.cumprod(np.where(bound, 1.0, 1.0 - 1.0 / at_risk))])
    weights = -np.diff(surviving)
    return points[~bound], weights[~bound]


def _weighted_quantile(values: FloatArray, weights: FloatArray, q: float) -> float:
    """Return NumPy's linear quantile for equal weights, otherwise the first value at which the share is reached."""
    if np.ptp(weights) < 1e-9:
        return float(np.interp(q * (len(values) - 1), np.arange(len(values)), values))
    reached = int(np.searchsorted(np.cumsum(weights), q - 1e-9))
    return float(values[min(reached, len(values) - 1)])


def replicate_deviation(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard deviation of one measurement over all replicates, without outliers; None without replicates.

    It follows from the median distance between two runs of one configuration. The weight of a configuration is its
    number of runs minus one.
    """
    return _pooled_deviation([rows for _, rows in _by_size(groups)])


def _by_size(groups: Sequence[Sequence[float]]) -> list[tuple[IntArray, FloatArray]]:
    """Return the groups with k values each, for every k: their places, [c], and their values, [c, k]."""
    sizes = np.fromiter(map(len, groups), np.intp, len(groups))
    flat = np.fromiter(chain.from_iterable(groups), float, int(sizes.sum()))
    ends = np.cumsum(sizes)
    found = []
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size)
        found.append((places, flat[(ends[places] - size)[:, None] + np.arange(size)]))
    return found


def _pooled_deviation(blocks: Sequence[FloatArray]) -> float | None:
    distances, weights = [], []
    for rows in blocks:
        size = rows.shape[1]
        if size > 1:
            first, second = np.triu_indices(size, 1)
            distances.append(np.abs(rows[:, first] - rows[:, second]).ravel())
            weights.append(np.full(len(distances[-1]), 2 / size))
    if not distances:
        return None
    flat, weight = np.concatenate(distances), np.concatenate(weights)
    order = np.argsort(flat, kind="stable")
    return MAD / math.sqrt(2) * _weighted_quantile(flat[order], weight[order] / weight.sum(), 0.5)


def aggregate_neighbours(
    rows: FloatArray, values: FloatArray, counts: FloatArray, radius: float = 0.2, *, itself: bool = True
) -> FloatArray:
    """Return the weighted means, [n], of each estimate and its neighbours [robert-2021, section 5.2, (a)].

    Args:
        rows: [n, d] points of the unit cube.
        values: [n] their estimates.
        counts: [n] the number of measurements of each estimate.
        radius: distance, as a share of the cube's diagonal, at which a neighbour's measurement weighs 61 % of one's
            own; weights are Gaussian in the distance.
        itself: whether the point's own estimate counts.
    """
    squares = (rows**2).sum(1)
    distance = np.maximum(squares[:, None] + squares[None, :] - 2 * rows @ rows.T, 0.0) / max(rows.shape[1], 1)
    exponent = -0.5 * distance / radius**2
    if not itself:
        np.fill_diagonal(exponent, -np.inf)
    # The largest weight of a row is 1, so a point far from all others has its nearest point as a neighbour.
    weights = np.exp(exponent - exponent.max(1, keepdims=True)) * counts[None, :]
    return np.asarray((weights @ values) / weights.sum(1))


# The number of nearest others that predict a configuration.
_NEAREST = 5


def surroundings(rows: FloatArray, values: FloatArray) -> FloatArray:
    """Return the median, [n], of the values of each row's nearest others; with too few others, of all values.

    `rows`: [n, d] points of the unit cube; `values`: [n] their estimates. The cost is quadratic in n.
    """
    if len(rows) <= 2 * _NEAREST:
        return np.full(len(rows), np.median(values))
    squares = (rows**2).sum(1)
    distance = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    np.fill_diagonal(distance, np.inf)
    return np.asarray(np.median(values[np.argpartition(distance, _NEAREST - 1, axis=1)[:, :_NEAREST]], axis=1))


# Outliers for the worse and for the better: their frequency, and their average distance in standard deviations of
# ordinary runs. A shared system has slow hours but hardly ever fast ones.
_FREAKS = {1.0: (0.1, 10.0), -1.0: (0.002, 3.0)}
# Degrees of freedom of Student's distribution of configurations: most may be similar, and a few much better.
_TAILS = 4.0
# A configuration's own deviation shrinks towards the common one as if the latter came from this many runs of it.
_PRIOR_RUNS = 6
_GRID = 61
_REACH = 5.0


@dataclass(frozen=True)
class Beliefs:
    """The posterior `mean` and `deviation`, [n] each, of the latent values of n configurations.

    `low` to `high`, [n] each: 95 % intervals. `noise`: the standard deviation of one ordinary run of the best
    configuration. It is `measured` if there are replicates, and otherwise half of the differences between
    configurations counts as noise. `spread`: the standard deviation of the latent values near the best.
    """

    mean: FloatArray
    deviation: FloatArray
    low: FloatArray
    high: FloatArray
    noise: float
    measured: bool
    spread: float


def _enlarged(beliefs: Beliefs, size: float) -> Beliefs:
    """Return the beliefs for values that are `size` times as large, limited to the largest number."""
    most = float(np.finfo(float).max)

    def large(values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.clip(values * size, -most, most)

    return replace(
        beliefs,
        mean=large(beliefs.mean),
        deviation=large(beliefs.deviation),
        low=large(beliefs.low),
        high=large(beliefs.high),
        noise=min(beliefs.noise * size, most),
        spread=min(beliefs.spread * size, most),
    )


def believe(
    groups: Sequence[Sequence[float]], around: FloatArray | None = None, most: int | None = None
) -> tuple[Beliefs, IntArray]:
    """Return beliefs from a hierarchical model of the runs of configurations with at least one run each.

    A configuration's latent value is distributed around `around` (a prediction from the neighbours of each), or else
    around the middle of all. Its runs are normal around that value, with a deviation that is partly its own, but a run
    may be an outlier, most often a slow one. The common quantities are estimated robustly first (empirical Bayes), then
    each posterior is computed on a grid. If the values have one sign, the model uses their logarithms, because noise
    grows with the value. A single lucky run therefore shrinks towards the others; of two contradictory runs the better
    one is probably right; and with many runs, outliers have little influence. No configuration is believed to be better
    than its best run, because good neighbours are evidence against luck but not for a configuration with worse results.
    A penalty counts as the cap (`core.penalties`).

    The results are the beliefs about the `most` configurations with the best medians (None: all) and their places,
    ascending.
    """
    cap = cap_of(list(chain.from_iterable(groups)))
    if cap is not None:
        groups = [[min(value, cap) for value in group] for group in groups]
        around = None if around is None else np.minimum(around, cap)
    scale = Scale.of(groups)
    size = max(abs(value) for group in groups for value in group)
    if size > LARGEST and not scale.sign:
        small = [[value / size for value in group] for group in groups]
        beliefs, places = believe(small, None if around is None else around / size, most)
        return _enlarged(beliefs, size), places
    blocks = [(places, scale.apply(rows)) for places, rows in _by_size(groups)]
    points, counts = np.empty(len(groups)), np.empty(len(groups))
    for places, rows in blocks:
        points[places], counts[places] = np.median(rows, axis=1), rows.shape[1]
    middle = np.full(len(points), np.median(points)) if around is None else scale.apply(around)
    below = points[points <= middle] - middle[points <= middle]
    distance = math.sqrt(float(np.mean(below**2))) if len(below) else 0.0
    pooled = _pooled_deviation([rows for _, rows in blocks])
    least = 1e-9 * max(1.0, float(np.abs(points).max()))
    noise = max(distance / math.sqrt(2) if pooled is None else pooled, least)
    spread = math.sqrt(max(distance**2 - noise**2 * float(np.mean(1 / counts)), (0.3 * distance) ** 2, least**2))
    wanted = np.sort(np.argsort(points, kind="stable")[:most])
    mean, deviation = np.empty(len(points)), np.empty(len(points))
    for places, rows in blocks:
        kept = np.isin(places, wanted)
        if kept.any():
            found, unsure = _posteriors(rows[kept], middle[places[kept]], spread, noise)
            mean[places[kept]], deviation[places[kept]] = np.maximum(found, rows[kept].min(1)), unsure
    mean, deviation = mean[wanted], deviation[wanted]
    slope = scale.slope(mean)
    steepness = float(slope[np.argmin(mean)])
    beliefs = Beliefs(
        mean=scale.restore(mean),
        deviation=slope * deviation,
        low=scale.restore(mean - 1.96 * deviation),
        high=scale.restore(mean + 1.96 * deviation),
        noise=noise * steepness,
        measured=pooled is not None,
        spread=spread * steepness,
    )
    return beliefs, wanted


def _posteriors(rows: FloatArray, middle: FloatArray, spread: float, noise: float) -> tuple[FloatArray, FloatArray]:
    """Return means and deviations, [c] each, of c configurations with k runs each, [c, k]."""
    size = rows.shape[1]
    residuals = np.minimum(np.abs(rows - np.median(rows, axis=1, keepdims=True)), 2.5 * noise)
    own = np.sqrt((_PRIOR_RUNS * noise**2 + (residuals**2).sum(1)) / (_PRIOR_RUNS + size - 1))[:, None, None]
    low = np.minimum(rows.min(1), middle) - _REACH * noise
    high = np.maximum(rows.max(1), middle) + _REACH * noise
    # Each further grid covers the mass that the previous one has found.
    for _ in range(3):
        grid = low[:, None] + np.linspace(0, 1, _GRID) * (high - low)[:, None]
        z = (rows[:, :, None] - grid[:, None, :]) / own
        density = np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)
        for side, (share, far) in _FREAKS.items():
            density += share / far * np.where(side * z > 0, np.exp(-np.abs(z) / far), 0.0)
        away = (grid - middle[:, None]) / spread
        log = np.log(density + 1e-300).sum(1) - (_TAILS + 1) / 2 * np.log1p(away**2 / _TAILS)
        weight = np.exp(log - log.max(1, keepdims=True))
        weight /= weight.sum(1, keepdims=True)
        mean = (weight * grid).sum(1)
        deviation = np.sqrt((weight * (grid - mean[:, None]) ** 2).sum(1))
        step = (high - low) / (_GRID - 1)
        deviation = np.maximum(deviation, step / 4)
        low, high = mean - _REACH * deviation, mean + _REACH * deviation
    return mean, deviation


@dataclass(frozen=True)
class Scale:
    """An increasing scale: logarithmic if all values have one sign (`sign` 1 or -1), otherwise linear (0)."""

    sign: float

    @classmethod
    def of(cls, groups: Sequence[Sequence[float]]) -> Scale:
        low, high = min(map(min, groups)), max(map(max, groups))
        return cls(1.0 if low > 0 else -1.0 if high < 0 else 0.0)

    def apply(self, values: Sequence[float] | FloatArray) -> FloatArray:
        plain = np.asarray(values, float)
        return self.sign * np.log(np.abs(plain)) if self.sign else plain

    def restore(self, values: FloatArray) -> FloatArray:
        return np.asarray(self.sign * np.exp(self.sign * values) if self.sign else values)

    def slope(self, values: FloatArray) -> FloatArray:
        return np.abs(self.restore(values)) if self.sign else np.ones_like(values)

    def gains(self, shifts: FloatArray, size: float) -> FloatArray:
        """Return the gains that follow from shifts on this scale, as shares of the earlier value.

        `size` is the earlier value without its sign, which only a linear scale needs.
        """
        # Smaller is better: the gain is 1 - after / before for positive and after / before - 1 for negative values.
        return np.asarray(-self.sign * np.expm1(self.sign * shifts) if self.sign else -shifts / size)


@dataclass(frozen=True)
class Gain:
    """The improvement as a share of the earlier value (0.12 is 12 %), with its interval from `low` to `high`."""

    estimate: float
    low: float
    high: float


def gain_interval(before: Sequence[float], after: Sequence[float], level: float = 0.95) -> Gain | None:
    """Return the gain of `after` over `before`, for any distribution of the noise; None for too few values.

    If all values have one sign, their logarithms are compared, because noise grows with the value.
    """
    if not before or not after:
        return None
    scale = Scale.of([before, after])
    first, second = scale.apply(before), scale.apply(after)
    shifts = shift_interval([(first, second)], level)
    return None if shifts is None else gain_of(scale, shifts, size_of(first, second))


def gain_of(scale: Scale, shifts: FloatArray, size: float) -> Gain:
    """Return the gain that follows from a shift and the ends of its interval, [3], on this scale.

    `size`: that of `size_of`, which only a linear scale needs.
    """
    with np.errstate(over="ignore"):
        gains = np.clip(scale.gains(shifts, 1.0 if scale.sign else size), -LARGEST, LARGEST)
    return Gain(float(gains[0]), float(gains[1:].min()), float(gains[1:].max()))


def shift_interval(strata: Sequence[tuple[FloatArray, FloatArray]], level: float) -> FloatArray | None:
    """Return the shift between two samples and the ends of its interval, [3]; None for too few values.

    The estimate is the median of all differences [hodges-1963], with the interval of the rank test [mann-1947]. Only
    values of the same stratum are compared, such as those of one machine. The test's statistic is the sum of those of
    the strata, so that a stratum may have any level of its own.

    Args:
        strata: both samples of each stratum, none of them empty.
    """
    if not strata:
        return None
    excluded = _ranks_excluded(_sizes(strata), level)
    if excluded is None:
        return None
    shifts = np.sort(_differences(strata))
    return np.array([np.median(shifts), shifts[excluded], shifts[-1 - excluded]])


def reaches(strata: Sequence[tuple[FloatArray, FloatArray]], level: float) -> bool:
    """Return whether `shift_interval` has an interval of this level for samples of these sizes."""
    return bool(strata) and _ranks_excluded(_sizes(strata), level) is not None


def shift_of(strata: Sequence[tuple[FloatArray, FloatArray]]) -> float:
    """Return the estimate of `shift_interval`; NaN without a value."""
    return float(np.median(_differences(strata))) if strata else math.nan


def _sizes(strata: Sequence[tuple[FloatArray, FloatArray]]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((len(before), len(after)) for before, after in strata))


def _differences(strata: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    return np.concatenate([(after[:, None] - before[None, :]).ravel() for before, after in strata])


def size_of(before: FloatArray, after: FloatArray) -> float:
    """Return the size by which gains on a linear scale are divided: the middle of the earlier values, if not zero."""
    return abs(float(np.median(before))) or abs(float(np.median(after))) or 1.0


@lru_cache(4096)
def _ranks_excluded(sizes: tuple[tuple[int, int], ...], level: float) -> int | None:
    """Return how many of the sorted differences are outside the interval at each end; None: level unreachable.

    `sizes`: those of both samples in each stratum.
    """
    tail = (1 - level) / 2
    pairs = sum(n * m for n, m in sizes)
    if pairs > 2500:
        spread = math.sqrt(sum(n * m * (n + m + 1) for n, m in sizes) / 12)
        return max(int(pairs / 2 - statistics.NormalDist().inv_cdf(1 - tail) * spread), 0)
    # Sums of independent statistics: the distribution is the convolution of theirs.
    chances = np.ones(1)
    for n, m in sizes:
        chances = np.convolve(chances, _rank_chances(n, m))
    outside = int(np.searchsorted(np.cumsum(chances), tail, side="right"))
    return None if outside == 0 else outside - 1


@lru_cache(4096)
def _rank_chances(n: int, m: int) -> FloatArray:
    """Return the probability of each rank statistic from 0 to n * m, if there is no difference between the samples."""
    # ways[u] is the number of arrangements of the two samples with the rank statistic u: the recurrence of
    # [mann-1947], as a product of Gaussian polynomials.
    ways = np.zeros(n * m + 1)
    ways[0] = 1.0
    for k in range(1, n + 1):
        raised = ways.copy()
        raised[m + k :] -= ways[: max(len(ways) - m - k, 0)]
        for start in range(k):
            raised[start::k] = np.cumsum(raised[start::k])
        ways = raised
    return ways / math.comb(n + m, n)


def _number(options: Mapping[str, object], name: str) -> float:
    return float(str(options[name]))
