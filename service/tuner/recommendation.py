"""The recommended configuration, by a posterior or by estimates over replicates, never by a single lucky run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.core.encoding import Encoding
from service.core.estimates import median
from service.core.lifecycle import TrialState
from service.core.pareto import front
from service.core.penalties import without_huge
from service.core.prediction import Prediction
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord, trusted, usual_share
from service.policies.noise import aggregate_neighbours, believe, surroundings
from service.tuner.shown_values import (
    Belief,
    Calibration,
    ConfigurationSamples,
    Measured,
    calibration_for,
    gain_interval,
    gain_of,
    shifted,
    shown,
)

# With more configurations than this only the best are considered, because distances are quadratic in their number.
_MOST = 500
# Replicates from which the noise counts as known. A single pair may agree by chance: of 200 simulated studies of
# `random`, 20 had one, and their intervals held in 33 %. Without any, a model mistakes noise for shape: after 8 to 24
# trials of 217 simulated studies of `gp`, its intervals held in 38 % of 555 cases.
_LEAST_REPLICATES = 3


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


BY_POSTERIOR = (
    Calibration(16, -2.2, 1.05, 5.65, -5.3, 2.28),
    Calibration(30, -2.1, 1.2, 4.75, -3.3, 2.1),
)
# By estimates over the replicates of the resampling `adaptive`, and over those of any other.
AFTER_ADAPTIVE = (
    Calibration(30, -2.0, 0.36, 3.16, -3.06, 2.6),
    Calibration(60, -2.1, 0.75, 2.66, -2.74, 3.03),
)
AFTER_CLOSING = (
    Calibration(16, -2.2, 0.4, 4.35, -4.25, 2.5),
    Calibration(30, -2.3, 0.7, 4.2, -3.7, 2.3),
    Calibration(60, -2.25, 0.98, 3.0, -2.6, 2.7),
    Calibration(100, -2.0, 1.25, 2.7, -2.75, 2.5),
)


def samples_of(problem: Problem, trials: Sequence[TrialRecord]) -> list[ConfigurationSamples]:
    """Return the configurations with a finite value for every objective, in the order of their first trial.

    Configurations that broke an outcome constraint in at least half of their trials are left out if there are others.
    Disturbed runs count as in `core.trial.trusted`.
    """
    sign, metric = float(problem.signs()[0]), problem.metrics[0]
    groups: dict[str, list[TrialRecord]] = {}
    bounds: dict[str, list[float]] = {}
    for trial in map(without_huge, trials):
        key = problem.space.key(trial.configuration)
        finite = all(math.isfinite(trial.metrics.get(metric, math.nan)) for metric in problem.metrics)
        if trial.state == TrialState.COMPLETED and finite:
            groups.setdefault(key, []).append(trial)
        elif trial.state == TrialState.PRUNED and math.isfinite(trial.metrics.get(metric, math.nan)):
            bounds.setdefault(key, []).append(sign * trial.metrics[metric])
    usual = usual_share(trials)
    feasible = {
        key: group for key, group in groups.items() if problem.mostly_acceptable([trial.metrics for trial in group])
    }
    return [
        ConfigurationSamples(
            group[0].configuration,
            tuple(sign * trial.metrics[metric] for trial in trusted(group, usual, metric)),
            tuple(bounds.get(key, ())),
        )
        for key, group in (feasible or groups).items()
    ]


def leading(problem: Problem, found: Sequence[ConfigurationSamples]) -> Sequence[ConfigurationSamples]:
    """Return the configurations with the best medians, at most 500, and the default, in their order."""
    if len(found) <= _MOST:
        return found
    medians = [median(one.values) for one in found]
    kept = set(np.argsort(medians, kind="stable")[:_MOST].tolist())
    default = _place_of_default(problem, found)
    return [one for place, one in enumerate(found) if place in kept or place == default]


def by_posterior(problem: Problem, found: Sequence[ConfigurationSamples], prediction: Prediction) -> Recommendation:
    """Return the best of the measured configurations by `prediction`, which is of `found`, in its order.

    A configuration with a penalty is recommended only if there is no other.
    """
    measured = Measured(found)
    prediction = replace(prediction, mean=measured.inside(prediction.mean, prediction.noise))
    best = int(measured.usable[prediction.at(measured.usable).best()[0]])
    is_known = not problem.noisy or _is_repeated(found)

    def belief(place: int) -> Belief:
        mean, deviation = float(prediction.mean[place]), float(prediction.deviation[place])
        return measured.belief(mean, deviation, prediction.noise) if is_known else Belief(mean, None)

    return _recommendation(problem, found, measured, best, belief, BY_POSTERIOR)


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
    replicates are those of the resampling of that name. A configuration with a penalty is recommended only if there is
    no other.
    """
    calibration = AFTER_ADAPTIVE if adaptive else AFTER_CLOSING
    measured = Measured(found)
    raw = np.array([estimate(one.values, one.bounds) for one in found])
    if not problem.noisy or len(found) == 1:
        best = int(measured.usable[np.argmin(raw[measured.usable])])
        deviation = None if problem.noisy else 0.0
        alone = [Belief(float(value), deviation) for value in raw]
        return _recommendation(problem, found, measured, best, alone.__getitem__, calibration)
    kept = measured.usable[np.argsort(raw[measured.usable], kind="stable")[:_MOST]]
    default = _place_of_default(problem, found)
    if default is not None and default not in kept:
        kept = np.append(kept, default)
    limited = [[min(value, measured.cap) for value in found[place].values] for place in kept]
    middles = np.array([median(values) for values in limited])
    counts = np.array([len(values) for values in limited], dtype=float)
    rows = Encoding(problem.space).encode([found[place].configuration for place in kept])
    beliefs, _ = believe(limited, surroundings(rows, middles))
    values = beliefs.mean + np.minimum(raw[kept], measured.cap) - middles
    if neighbours > 0.0:
        values = aggregate_neighbours(rows, values, counts, neighbours)
    ordered = np.lexsort((raw[kept], -counts, values))
    best = next(int(kept[place]) for place in ordered if kept[place] in measured.usable)
    is_known = _is_repeated(found)
    places = {int(place): index for index, place in enumerate(kept)}

    def belief(place: int) -> Belief:
        mean, deviation = float(values[places[place]]), float(beliefs.deviation[places[place]])
        return measured.belief(mean, deviation, beliefs.noise) if is_known else Belief(mean, None)

    return _recommendation(problem, found, measured, best, belief, calibration)


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
    measured: Measured,
    best: int,
    belief: Callable[[int], Belief],
    calibrations: Sequence[Calibration],
) -> Recommendation:
    """Return the recommendation of the configuration at the place `best` in the objective's own unit.

    `belief` returns what is believed of the configuration at a place.
    """
    calibration = calibration_for(calibrations, measured.runs)
    sign = float(problem.signs()[0])
    default = _place_of_default(problem, found)

    def number(place: int) -> float:
        if not problem.noisy:
            return belief(place).mean
        return shown(found[place], belief(place), None if place == default else calibration.middle, measured)

    configuration, value = found[best].configuration, number(best)
    low, high = (shifted(value, belief(best), by, measured) for by in (calibration.low, calibration.high))
    ends: list[float | None] = [None, None]
    if belief(best).deviation is not None:
        low, high = measured.interval(low, value, high)
        ends = sorted((sign * low, sign * high))  # type: ignore[assignment]
    plain = Recommendation(configuration, sign * value, ends[0], ends[1])
    if default is None:
        return plain
    if best == default:
        return replace(plain, default=sign * value, gain=0.0)
    before = number(default)
    shifts = calibration.gain_low, calibration.gain_high
    gain_low, gain_high = gain_interval(value, belief(best), before, belief(default), shifts, measured)
    return replace(plain, default=sign * before, gain=gain_of(before, value), gain_low=gain_low, gain_high=gain_high)
