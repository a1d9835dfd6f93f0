"""Estimates of each configuration's metrics from a study's trials, and the ranking of configurations by them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.lifecycle import TrialState
from service.core.pareto import non_dominated
from service.core.penalties import shown_cap_of
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord, trusted, usual_share


@dataclass(frozen=True)
class Estimate:
    """The objectives' metrics of one configuration over its `n` completed trials, with their `numbers` in order.

    `acceptable`: more than half of the trials met the outcome constraints.
    """

    configuration: Configuration
    numbers: tuple[int, ...]
    mean: Mapping[str, float]
    median: Mapping[str, float]
    n: int
    acceptable: bool = True


def aggregate(problem: Problem, trials: Sequence[TrialRecord], usual: float | None = None) -> list[Estimate]:
    """Return an estimate for each measured configuration, in the order of its first trial.

    Only COMPLETED trials with a finite value for every objective count. Disturbed runs count as in `trial.trusted`.
    `usual`: the usual share of the whole study, if the trials are only a part; by default that of the trials.
    """
    usual = usual_share(trials) if usual is None else usual
    metrics = [objective.metric for objective in problem.objectives]
    groups: dict[str, list[TrialRecord]] = {}
    for trial in sorted(trials, key=lambda trial: trial.number):
        measured = all(math.isfinite(trial.metrics.get(metric, math.nan)) for metric in metrics)
        if trial.state == TrialState.COMPLETED and measured:
            groups.setdefault(problem.space.key(trial.configuration), []).append(trial)
    return [
        Estimate(
            configuration=group[0].configuration,
            numbers=tuple(trial.number for trial in group),
            mean={metric: mean(_values(group, usual, metric)) for metric in metrics},
            median={metric: median(_values(group, usual, metric)) for metric in metrics},
            n=len(group),
            acceptable=problem.mostly_acceptable([trial.metrics for trial in group]),
        )
        for group in groups.values()
    ]


def _values(group: Sequence[TrialRecord], usual: float, metric: str) -> list[float]:
    return [trial.metrics[metric] for trial in trusted(group, usual, metric)]


def median(values: Sequence[float]) -> float:
    """Return the median, even of two numbers whose sum is too large for a float."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else ordered[half - 1] / 2 + ordered[half] / 2


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean, even of numbers whose sum is too large for a float."""
    try:
        return statistics.fmean(values)
    except OverflowError:
        half = math.fsum(value / 2 / len(values) for value in values)
        return min(max(2 * half, min(values)), max(values))


def best(problem: Problem, trials: Sequence[TrialRecord]) -> list[Estimate]:
    """Return the configuration with the best median; with several objectives, the Pareto set.

    Acceptable configurations have precedence over all others. Ties go to the configuration that was measured more
    often, then to the one that was measured first. The Pareto set starts with the best in the first objective. The
    result is empty if no configuration was measured.
    """
    return best_of(problem, aggregate(problem, trials))


def best_of(problem: Problem, found: Sequence[Estimate]) -> list[Estimate]:
    """Return the same as `best` for given estimates."""
    order = ranked(problem, found)
    return order[:1] if len(problem.objectives) == 1 else order


def ranked(problem: Problem, found: Sequence[Estimate]) -> list[Estimate]:
    """Return the configurations from the best to the worst; with several objectives, the Pareto set as in `best`.

    A configuration with a penalty in any objective is in the Pareto set only if there is no other.
    """
    found = [estimate for estimate in found if estimate.acceptable] or found
    if not found:
        return []
    values = problem.signs() * np.array(
        [[estimate.median[objective.metric] for objective in problem.objectives] for estimate in found]
    )
    if len(problem.objectives) > 1:
        caps = [shown_cap_of(column) for column in values.T]
        good = (values <= [math.inf if cap is None else cap for cap in caps]).all(axis=1)
        if good.any():
            found, values = [found[place] for place in np.flatnonzero(good).tolist()], values[good]
    order = sorted(range(len(found)), key=lambda place: (*values[place], -found[place].n, found[place].numbers))
    if len(problem.objectives) == 1:
        return [found[place] for place in order]
    front = non_dominated(values)
    return [found[place] for place in order if front[place]]
