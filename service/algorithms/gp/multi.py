"""Acquisitions for several objectives: the improvement of the measured Pareto set by a configuration.

`hypervolume`: the logarithm of the expected growth of the volume between the Pareto set and a reference point; the set
is itself uncertain [daulton-2021] [ament-2023]. BoTorch's qLogNoisyExpectedHypervolumeImprovement estimates the same
quantity for one new point and pending points; here the new point's own values have a closed form.

`scalarise`: a random weighting of the objectives, drawn for each suggestion, is improved like a single objective
[knowles-2006].
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from service.algorithms.gp.acquisition import Acquisition, draws_of, log_improvement_of
from service.algorithms.gp.fits import Process
from service.algorithms.gp.models import Posterior
from service.algorithms.gp.runs import Runs
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.pareto import non_dominated, reference_point
from service.core.problem import Problem

# The number of the volume's cells grows fast with the objectives. With more objectives than this, weightings are used.
_MOST_OBJECTIVES = 4
_BASELINE = 24
_DRAWS = 16
_CHUNK = 1024
# The distance of an inferred reference point beyond the worst of the Pareto set, in spans of the set.
_BEYOND_WORST = 0.1
_BEYOND_BEST = 0.5
# A limit in standard deviations, against overflows.
_FARTHEST = 1e6
_AUGMENTED = 0.05


@dataclass(frozen=True)
class Settings:
    """The treatment of several objectives. `reference`: [m] values times their signs; None: inferred."""

    hypervolume: bool
    reference: FloatArray | None
    noisy: bool

    @classmethod
    def of(cls, problem: Problem, options: Mapping[str, JsonValue]) -> Settings:
        """Return the algorithm's settings. Raises InvalidInput (field `algorithm.options.reference_point`)."""
        chosen, given = options["multi_objective"], options["reference_point"]
        hypervolume = len(problem.objectives) <= _MOST_OBJECTIVES if chosen is None else chosen == "hypervolume"
        reference = None if given is None else problem.signs() * reference_point(problem, str(given))
        return cls(hypervolume, reference, problem.noisy)


def weighted(objectives: Sequence[Runs], random: np.random.Generator) -> Runs:
    """Return the runs with a random augmented Chebyshev weighting of their values."""
    values = np.stack([runs.values for runs in objectives], 1)
    measured = values[~objectives[0].bounded]
    front = measured[non_dominated(measured)]
    # The span of the Pareto set is the unit, so that the meaning of weights does not depend on the worst trials.
    span = np.ptp(front if len(front) > 1 else measured, axis=0)
    # The ideal is beyond the best of each objective, because otherwise a better value would gain nothing.
    ideal = measured.min(0) - _BEYOND_BEST * span
    weights = random.dirichlet(np.ones(len(ideal))) / np.where(span > 0.0, span, 1.0)
    regret = weights * (values - ideal)
    return Runs.of(objectives[0].rows, regret.max(1) + _AUGMENTED * regret.sum(1), objectives[0].bounded)


def hypervolume(
    processes: Sequence[Process],
    incumbents: FloatArray,
    running: FloatArray,
    settings: Settings,
    random: np.random.Generator,
) -> Acquisition:
    """Return the acquisition for one more configuration in addition to the running ones.

    `processes` has one for each objective. `incumbents`: [k, d], acceptable rows with measurements.
    """
    expected = np.stack([one.posterior(running[:0]).predict(incumbents)[0] for one in processes], 1)
    worst = _inferred(expected)
    if settings.reference is not None:
        worst = np.concatenate(
            [one.scale.apply(np.array([value])) for one, value in zip(processes, settings.reference, strict=True)]
        )
    # Without noise the values of all measured configurations are known.
    uncertain = incumbents[_fronts_first(expected)][:_BASELINE] if settings.noisy else incumbents[:0]
    return LogHypervolumeImprovement(
        [one.posterior(np.vstack([uncertain, running])) for one in processes],
        known=expected[:0] if settings.noisy else expected,
        reference=worst,
        draws=_DRAWS,
        random=random,
    )


class LogHypervolumeImprovement:
    """The logarithm of the expected growth of the volume that outcomes dominate; larger outcomes are better.

    `posteriors`: one for each of m independent objectives; their extra points are the configurations whose values are
    drawn. `known`: [k, m] certain outcomes. `reference`: [m], the point where the volume begins.
    """

    def __init__(
        self,
        posteriors: Sequence[Posterior],
        *,
        known: FloatArray,
        reference: FloatArray,
        draws: int,
        random: np.random.Generator,
    ) -> None:
        self._posteriors = posteriors
        self._white = [draws_of(posterior, draws, random) for posterior in posteriors]
        drawn = np.stack(
            [
                posterior.mean + posterior.factor[posterior.count :] @ white
                for posterior, white in zip(posteriors, self._white, strict=True)
            ],
            -1,
        )
        cells = [_cells(np.vstack([known, drawn[:, draw]]), reference) for draw in range(drawn.shape[1])]
        most = max(len(low) for low, _ in cells)
        # The arrays are [draws, cells, m]; cells that only pad a draw have no extent.
        self._low, self._high = (
            np.stack(
                [np.vstack([cell[side], np.full((most - len(cell[side]), len(reference)), 1e6)]) for cell in cells]
            )
            for side in (0, 1)
        )

    def score(self, rows: FloatArray) -> FloatArray:
        scores = [self._parts(rows[first : first + _CHUNK])[0] for first in range(0, len(rows), _CHUNK)]
        return np.concatenate(scores) if scores else np.zeros(0)

    def value_and_gradient(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, share, parts = self._parts(rows)
        gradient = np.zeros_like(rows)
        for posterior, drawn, (white, deviation, slope, by_mean, by_deviation) in zip(
            self._posteriors, self._white, parts, strict=True
        ):
            means = (share * by_mean).sum(2)
            deviations = (share * by_deviation).sum((1, 2))
            gradient += posterior.pull_back(drawn @ means.T - white * (deviations / deviation), rows, slope)
        return value, gradient

    def _parts(self, rows: FloatArray) -> tuple[FloatArray, FloatArray, list[tuple[FloatArray, ...]]]:
        """Return values, [b], their shares, [b, draws, cells], and for each objective the parts of the derivatives."""
        total: FloatArray = np.zeros(())
        parts: list[tuple[FloatArray, ...]] = []
        for objective, (posterior, drawn) in enumerate(zip(self._posteriors, self._white, strict=True)):
            white, deviation, slope = posterior.project(rows)
            mean = posterior.mean + white.T @ drawn
            extent, by_mean, by_deviation = _extent(
                mean[:, :, None], deviation[:, None, None], self._low[:, :, objective], self._high[:, :, objective]
            )
            total = total + extent
            parts.append((white, deviation, slope, by_mean, by_deviation))
        largest: FloatArray = total.max((1, 2), keepdims=True)
        share: FloatArray = np.exp(total - largest)
        summed: FloatArray = share.sum((1, 2), keepdims=True)
        value: FloatArray = (largest + np.log(summed / share.shape[1])).ravel()
        return value, share / summed, parts


def _extent(
    mean: FloatArray, deviation: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the logarithm of a normal value's expected reach into [low, high], and its derivatives.

    The expectation of max(min(f, high) - low, 0) is the expected improvement on `low` minus that on `high`.
    """
    above_low = np.maximum((mean - low) / deviation, -_FARTHEST)
    above_high = np.maximum((mean - high) / deviation, -_FARTHEST)
    log_low, ratio_low = log_improvement_of(above_low)
    log_high, ratio_high = log_improvement_of(above_high)
    left = np.where(np.isinf(high), 0.0, np.exp(log_high - log_low))
    rest = np.maximum(1.0 - left, 1e-12)
    by_mean = (ratio_low - left * ratio_high) / (deviation * rest)
    by_deviation = (1.0 - above_low * ratio_low - left * (1.0 - above_high * ratio_high)) / (deviation * rest)
    return log_low + np.log(rest) + np.log(deviation), by_mean, by_deviation


def _cells(values: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper corners, [c, m] each, of boxes that fill the non-dominated part above `reference`."""
    above = values[(values > reference).all(1)]
    front = above[non_dominated(-above)]
    front = np.unique(front, axis=0)
    if len(reference) == 2:
        edges = np.concatenate([reference[:1], front[:, 0], [math.inf]])
        floors = np.concatenate([front[:, 1], reference[1:]])
        return np.stack([edges[:-1], floors], 1), np.stack([edges[1:], np.full(len(floors), math.inf)], 1)
    import torch
    from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning

    low, high = FastNondominatedPartitioning(
        torch.from_numpy(reference), torch.from_numpy(front)
    ).get_hypercell_bounds()
    return low.numpy(), high.numpy()


def _inferred(expected: FloatArray) -> FloatArray:
    """Return a reference point, [m], a little beyond the worst of the Pareto set and of 90 % of the outcomes.

    If it depended only on the Pareto set, it would keep a set that is still narrow from growing.
    """
    front = expected[non_dominated(-expected)]
    span = np.ptp(front, axis=0)
    span = np.where(span > 0.0, span, np.ptp(expected, axis=0))
    beyond = front.min(0) - _BEYOND_WORST * np.where(span > 0.0, span, 1.0)
    return np.asarray(np.minimum(beyond, np.quantile(expected, 0.1, axis=0)))


def _fronts_first(expected: FloatArray) -> FloatArray:
    """Return the places of the Pareto set, then those of the Pareto set of the remaining outcomes, and so on."""
    order: list[int] = []
    left = np.arange(len(expected))
    while len(left):
        front = non_dominated(-expected[left])
        order += left[front].tolist()
        left = left[~front]
    return np.array(order)
