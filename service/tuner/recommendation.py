"""The recommended configuration, by a posterior or by estimates over replicates, never by a single lucky run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.core.encoding import Encoding
from service.core.lifecycle import TrialState
from service.core.pareto import front
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord, trusted
from service.policies.noise import Scale, aggregate_neighbours, believe, replicate_deviation, surroundings

# With more configurations than this only the best are considered, because distances are quadratic in their number.
_MOST = 500
# Replicates from which the noise counts as known. A single pair may agree by chance: of 200 simulated studies of
# `random`, 20 had one, and their intervals held in 33 %. Without any, a model mistakes noise for shape: after 8 to 24
# trials of 217 simulated studies of `gp`, its intervals held in 38 % of 555 cases.
_LEAST_REPLICATES = 3
# A model of n runs may believe in far less noise than their replicates show. So a posterior's deviation is at least the
# standard error of the configuration's own runs, times this number / n. Without this, the intervals contained the value
# in 86 % and the gain in 86 % of simulated studies with 16 trials (tests/benchmarks/README.md).
_DOUBTED_RUNS = 10.0


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended configuration, the expected value of its first objective, and the gain over the default.

    The interval from `low` to `high` contains the value without the noise of one measurement in 95 % of studies, and
    the one from `gain_low` to `gain_high` the gain: the advance of `value` over `default` as a share of `default`. Both
    are None if nothing is known about the noise. `default` is the expected value of the default; it and `gain` are None
    before the default was measured.
    """

    configuration: Configuration
    value: float
    low: float | None
    high: float | None
    default: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None


@dataclass(frozen=True, slots=True)
class ContextTable:
    """The recommendations of a study with a context, one for each context that has measurements."""

    rows: tuple[Recommendation, ...]


@dataclass(frozen=True, slots=True)
class ParetoSet:
    """The Pareto set of the measured configurations by a posterior, the best in the first objective first.

    `values` has the expected values of all objectives for each configuration, and `default` those of the default; None
    if it was not measured.
    """

    configurations: tuple[Configuration, ...]
    values: tuple[tuple[float, ...], ...]
    default: tuple[float, ...] | None


# What a search has found.
Found = Recommendation | ContextTable | ParetoSet


@dataclass(frozen=True, slots=True)
class Belief:
    """The `mean` of a latent value, times the objective's sign, and its standard `deviation`; None if it is unknown."""

    mean: float
    deviation: float | None


@dataclass(frozen=True, slots=True)
class Calibration:
    """The 2.5 %, 50 % and 97.5 % quantiles of (truth - mean) / deviation over simulated studies.

    They account for the choice of the best of many noisy values (the winner's curse), for a model that takes noise for
    shape, and for each other fault of the deviation. The first three are of the recommended value, the others the outer
    ones of the logarithm of the gain's ratio. An interval with these quantiles is a conformal one [vovk-2005, chapter
    2]: it holds in 95 % of studies like the simulated ones, whatever the model. tests/benchmarks/coverage.py measures
    them with its seeds for development, and the coverage with other seeds.
    """

    low: float
    middle: float
    high: float
    gain_low: float
    gain_high: float


BY_POSTERIOR = Calibration(-1.32, 1.0, 4.47, -5.13, 2.14)
# By estimates over the replicates of the resampling `adaptive`, and over those of any other.
AFTER_ADAPTIVE = Calibration(-2.39, 0.56, 3.67, -3.74, 2.64)
AFTER_CLOSING = Calibration(-1.63, 1.07, 4.03, -5.38, 1.85)


@dataclass(frozen=True, slots=True)
class ConfigurationSamples:
    """A configuration and its measured values of the first objective, times the objective's sign.

    `bounds`: the bounds of its PRUNED trials, whose values would have been at least as large.
    """

    configuration: Configuration
    values: tuple[float, ...]
    bounds: tuple[float, ...] = ()


def samples_of(problem: Problem, trials: Sequence[TrialRecord]) -> list[ConfigurationSamples]:
    """Return the configurations with a finite value for every objective, in the order of their first trial.

    Configurations that broke an outcome constraint in at least half of their trials are left out if there are others.
    Values with a doubtful timing are left out if the configuration has others.
    """
    sign, metric = float(problem.signs()[0]), problem.metrics[0]
    groups: dict[str, list[TrialRecord]] = {}
    bounds: dict[str, list[float]] = {}
    for trial in trials:
        key = problem.space.key(trial.configuration)
        finite = all(math.isfinite(trial.metrics.get(metric, math.nan)) for metric in problem.metrics)
        if trial.state == TrialState.COMPLETED and finite:
            groups.setdefault(key, []).append(trial)
        elif trial.state == TrialState.PRUNED and math.isfinite(trial.metrics.get(metric, math.nan)):
            bounds.setdefault(key, []).append(sign * trial.metrics[metric])
    feasible = {
        key: group for key, group in groups.items() if problem.mostly_acceptable([trial.metrics for trial in group])
    }
    return [
        ConfigurationSamples(
            group[0].configuration,
            tuple(sign * trial.metrics[metric] for trial in trusted(group)),
            tuple(bounds.get(key, ())),
        )
        for key, group in (feasible or groups).items()
    ]


def leading(problem: Problem, found: Sequence[ConfigurationSamples]) -> Sequence[ConfigurationSamples]:
    """Return the configurations with the best medians, at most 500, and the default, in their order."""
    if len(found) <= _MOST:
        return found
    medians = [statistics.median(one.values) for one in found]
    kept = set(np.argsort(medians, kind="stable")[:_MOST].tolist())
    default = _place_of_default(problem, found)
    return [one for place, one in enumerate(found) if place in kept or place == default]


def by_posterior(problem: Problem, found: Sequence[ConfigurationSamples], prediction: Prediction) -> Recommendation:
    """Return the best of the measured configurations by `prediction`, which is of `found`, in its order."""
    best = int(prediction.best()[0])
    is_known = not problem.noisy or _is_repeated(found)
    scale = Scale.of([one.values for one in found])
    noise = replicate_deviation([scale.apply(one.values).tolist() for one in found]) if problem.noisy else None
    doubt = min(_DOUBTED_RUNS / sum(len(one.values) for one in found), 1.0)

    def belief(place: int) -> Belief:
        mean, deviation = float(prediction.mean[place]), float(prediction.deviation[place])
        if noise is not None:
            error = noise * (abs(mean) if scale.sign else 1.0) / math.sqrt(len(found[place].values))
            deviation = max(deviation, doubt * error)
        return Belief(mean, deviation if is_known else None)

    default = _place_of_default(problem, found)
    return _recommendation(
        problem, found, best, belief(best), None if default is None else belief(default), BY_POSTERIOR
    )


def pareto_set(problem: Problem, found: Sequence[ConfigurationSamples], predictions: Sequence[Prediction]) -> ParetoSet:
    """Return the Pareto set by `predictions`, one for each objective, which are of `found`, in its order.

    Under noise, single lucky runs seem to dominate most of the true Pareto set: on two functions with 5 % of noise, the
    set by medians missed 13 and 41 % of the largest hypervolume, and this one 5 and 26 % (tests/benchmarks/README.md).
    """
    costs = np.stack([one.mean for one in predictions], 1)
    kept = predictions[0].probable()
    members = kept[front(costs[kept])]
    values = [tuple(row) for row in (problem.signs() * costs).tolist()]
    default = _place_of_default(problem, found)
    return ParetoSet(
        tuple(found[place].configuration for place in members),
        tuple(values[place] for place in members),
        None if default is None else values[default],
    )


def expected_improvement(prediction: Prediction, measured: int) -> float:
    """Return the largest expected improvement of a latent value over the best mean of the first `measured` ones."""
    best = float(prediction.mean[:measured].min())
    deviation = np.maximum(prediction.deviation, 1e-12 * max(abs(best), 1.0))
    ahead = (best - prediction.mean) / deviation
    density = np.exp(-0.5 * ahead**2) / math.sqrt(2 * math.pi)
    below = 0.5 * np.array([math.erfc(-one / math.sqrt(2)) for one in ahead])
    return float((deviation * (ahead * below + density)).max())


def by_estimate(
    problem: Problem,
    found: Sequence[ConfigurationSamples],
    estimate: Callable[[Sequence[float], Sequence[float]], float],
    neighbours: float = 0.0,
    *,
    adaptive: bool = False,
) -> Recommendation:
    """Return the configuration with the best estimate, after each estimate has moved towards those of its neighbours.

    `estimate` receives values and bounds. The model of `noise.believe` determines the shift and the uncertainty; the
    difference of the estimate (a cautious quantile, for example) from the median is added to it. If `neighbours` is
    above 0, averages over neighbours up to about that distance decide (`noise.aggregate_neighbours`). `adaptive`: the
    replicates are those of the resampling of that name.
    """
    calibration = AFTER_ADAPTIVE if adaptive else AFTER_CLOSING
    raw = np.array([estimate(one.values, one.bounds) for one in found])
    if not problem.noisy or len(found) == 1:
        best = int(np.argmin(raw))
        deviation = None if problem.noisy else 0.0
        default = _place_of_default(problem, found)
        before = None if default is None else Belief(float(raw[default]), deviation)
        return _recommendation(problem, found, best, Belief(float(raw[best]), deviation), before, calibration)
    kept = np.argsort(raw, kind="stable")[:_MOST]
    default = _place_of_default(problem, found)
    if default is not None and default not in kept:
        kept = np.append(kept, default)
    middles = np.array([statistics.median(found[place].values) for place in kept])
    counts = np.array([len(found[place].values) for place in kept], dtype=float)
    rows = Encoding(problem.space).encode([found[place].configuration for place in kept])
    beliefs, _ = believe([found[place].values for place in kept], surroundings(rows, middles))
    values = beliefs.mean + raw[kept] - middles
    if neighbours > 0.0:
        values = aggregate_neighbours(rows, values, counts, neighbours)
    best = int(np.lexsort((raw[kept], -counts, values))[0])
    is_known = _is_repeated(found)

    def belief(place: int) -> Belief:
        return Belief(float(values[place]), float(beliefs.deviation[place]) if is_known else None)

    before = None if default is None else belief(int(np.flatnonzero(kept == default)[0]))
    return _recommendation(problem, found, int(kept[best]), belief(best), before, calibration)


def _is_repeated(found: Sequence[ConfigurationSamples]) -> bool:
    """Return whether enough measurements were repeated to know the noise."""
    return sum(len(one.values) - 1 for one in found) >= _LEAST_REPLICATES


def _place_of_default(problem: Problem, found: Sequence[ConfigurationSamples]) -> int | None:
    """Return the place of the default among the measured configurations; None if it was not measured."""
    key = problem.space.key
    default = key(problem.space.default())
    return next((place for place, one in enumerate(found) if key(one.configuration) == default), None)


def _recommendation(
    problem: Problem,
    found: Sequence[ConfigurationSamples],
    best: int,
    belief: Belief,
    default: Belief | None,
    calibration: Calibration,
) -> Recommendation:
    """Return the recommendation in the objective's own unit."""
    sign = float(problem.signs()[0])
    configuration = found[best].configuration
    values = [value for one in found for value in one.values]
    # Noise grows with values of one sign, so that their logarithms are compared.
    ratio = min(values) > 0 or max(values) < 0
    low, middle, high = _moved(belief, (calibration.low, calibration.middle, calibration.high), ratio=ratio)
    ends: list[float | None] = [None, None]
    if low is not None and high is not None:
        ends = sorted((sign * low, sign * high))  # type: ignore[assignment]
    plain = Recommendation(configuration, sign * middle, ends[0], ends[1])
    if default is None:
        return plain
    if problem.space.key(configuration) == problem.space.key(problem.space.default()):
        return replace(plain, default=sign * middle, gain=0.0)
    gain = None if default.mean == 0.0 else (default.mean - middle) / abs(default.mean)
    gain_low, gain_high = _gain(belief, default, (calibration.gain_low, calibration.gain_high), ratio=ratio)
    return replace(plain, default=sign * default.mean, gain=gain, gain_low=gain_low, gain_high=gain_high)


def _moved(
    belief: Belief, shifts: tuple[float, float, float], *, ratio: bool
) -> tuple[float | None, float, float | None]:
    """Return the mean, moved by each number of deviations; the first and the last are None without a deviation."""
    mean, deviation = belief.mean, belief.deviation
    if deviation is None:
        return None, mean, None
    if ratio and _has_logarithm(belief):
        moved = [mean * math.exp(shift * deviation / mean) for shift in shifts]
    else:
        moved = [mean + shift * deviation for shift in shifts]
    return moved[0], moved[1], moved[2]


def _has_logarithm(belief: Belief) -> bool:
    """Return whether the deviation is small enough that its share of the mean is the deviation of the logarithm."""
    return belief.deviation is not None and abs(belief.mean) > belief.deviation


def _gain(
    best: Belief, default: Belief, shifts: tuple[float, float], *, ratio: bool
) -> tuple[float | None, float | None]:
    """Return the ends of the gain's interval, as shares of the default's value; None if they are unknown."""
    if default.mean == 0.0 or best.deviation is None or default.deviation is None:
        return None, None
    size = abs(default.mean)
    if ratio and best.mean / default.mean > 0.0 and _has_logarithm(best) and _has_logarithm(default):
        # The logarithm of default / best for times, and of best / default for rates, which are negative here.
        side = 1.0 if default.mean > 0.0 else -1.0
        advance = side * math.log(default.mean / best.mean)
        spread = math.hypot(best.deviation / best.mean, default.deviation / default.mean)
        low, high = (side * -math.expm1(-side * (advance + shift * spread)) for shift in shifts)
    else:
        spread = math.hypot(best.deviation, default.deviation) / size
        low, high = ((default.mean - best.mean) / size + shift * spread for shift in shifts)
    return low, high
