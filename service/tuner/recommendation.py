"""The recommended configuration, by a posterior or by estimates over replicates, never by a single lucky run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.encoding import Encoding
from service.core.lifecycle import TrialState
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.noise import aggregate_neighbours, believe, surroundings

# With more configurations than this only the best are considered, because distances are quadratic in their number.
_MOST = 500
_NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended configuration, the expected value of its first objective and the 95 % interval.

    The interval is of the objective itself, without the noise of one measurement. `low` and `high` are None if nothing
    is known about the noise.
    """

    configuration: Configuration
    value: float
    low: float | None
    high: float | None


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
        key: group
        for key, group in groups.items()
        if 2 * sum(problem.acceptable(trial.metrics) for trial in group) > len(group)
    }
    return [
        ConfigurationSamples(
            group[0].configuration, tuple(sign * trial.metrics[metric] for trial in group), tuple(bounds.get(key, ()))
        )
        for key, group in (feasible or groups).items()
    ]


def by_posterior(problem: Problem, found: Sequence[ConfigurationSamples], prediction: Prediction) -> Recommendation:
    """Return the measured configuration with the best posterior mean; `prediction` is of `found`, in its order."""
    best = int(np.argmin(prediction.mean))
    # Without replicates, a model with hardly more points than lengthscales mistakes noise for shape.
    is_enough = len(found) > len(problem.space.parameters) + 1 or any(len(one.values) > 1 for one in found)
    is_known = not problem.noisy or is_enough
    deviation = float(prediction.deviation[best]) if is_known else None
    return _recommendation(problem, found[best].configuration, float(prediction.mean[best]), deviation)


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
) -> Recommendation:
    """Return the configuration with the best estimate, after each estimate has moved towards those of its neighbours.

    `estimate` receives values and bounds. The model of `noise.believe` determines the shift and the uncertainty; the
    difference of the estimate (a cautious quantile, for example) from the median is added to it. If `neighbours` is
    above 0, averages over neighbours up to about that distance decide (`noise.aggregate_neighbours`).
    """
    raw = np.array([estimate(one.values, one.bounds) for one in found])
    if not problem.noisy or len(found) == 1:
        best = int(np.argmin(raw))
        return _recommendation(problem, found[best].configuration, float(raw[best]), None if problem.noisy else 0.0)
    kept = np.argsort(raw, kind="stable")[:_MOST]
    middles = np.array([statistics.median(found[place].values) for place in kept])
    counts = np.array([len(found[place].values) for place in kept], dtype=float)
    rows = Encoding(problem.space).encode([found[place].configuration for place in kept])
    beliefs, _ = believe([found[place].values for place in kept], surroundings(rows, middles))
    values = beliefs.mean + raw[kept] - middles
    if neighbours > 0.0:
        values = aggregate_neighbours(rows, values, counts, neighbours)
    best = int(np.lexsort((raw[kept], -counts, values))[0])
    deviation = float(beliefs.deviation[best]) if beliefs.measured else None
    return _recommendation(problem, found[kept[best]].configuration, float(values[best]), deviation)


def _recommendation(
    problem: Problem, configuration: Configuration, value: float, deviation: float | None
) -> Recommendation:
    """Return the recommendation in the objective's own unit."""
    sign = float(problem.signs()[0])
    if deviation is None:
        return Recommendation(configuration, sign * value, None, None)
    ends = sorted(sign * (value + side * _NORMAL_95 * deviation) for side in (-1, 1))
    return Recommendation(configuration, sign * value, ends[0], ends[1])
