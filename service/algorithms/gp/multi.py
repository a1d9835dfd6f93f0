"""Several objectives: what a configuration adds to the Pareto set of those that were measured.

`hypervolume`: the logarithm of how much it is expected to grow the volume between the set and a reference point, where
the set is itself uncertain: what BoTorch's qLogNoisyExpectedHypervolumeImprovement estimates for one new point beside
pending ones (Daulton, Balandat and Bakshy, "Parallel Bayesian optimization of multiple noisy objectives with expected
hypervolume improvement", NeurIPS 2021; Ament et al., 2023), in closed form for the new point's own values.

`scalarise`: a random weighting of the objectives, another one for every suggestion, is improved as a single objective
would be (Knowles, "ParEGO", 2006).
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

# The volume's cells grow fast with the objectives: beyond so many, weightings are taken.
_MOST_OBJECTIVES = 4
_BASELINE = 24
_DRAWS = 16
_CHUNK = 1024
# How far an inferred reference point lies beyond the worst of the Pareto set, in spans of the set.
_BEYOND_WORST = 0.1
_BEYOND_BEST = 0.5
# In standard deviations, against overflows.
_FARTHEST = 1e6
_AUGMENTED = 0.05


@dataclass(frozen=True)
class Settings:
    """How several objectives are weighed. `reference`: [m], values times their signs; None: inferred."""

    hypervolume: bool
    reference: FloatArray | None
    noisy: bool

    @classmethod
    def of(cls, problem: Problem, options: Mapping[str, JsonValue]) -> Settings:
        """From the algorithm's options. Raises InvalidInput (field `algorithm.options.reference_point`)."""
        chosen, given = options["multi_objective"], options["reference_point"]
        hypervolume = len(problem.objectives) <= _MOST_OBJECTIVES if chosen is None else chosen == "hypervolume"
        reference = None if given is None else problem.signs() * reference_point(problem, str(given))
        return cls(hypervolume, reference, problem.noisy)


def weighted(objectives: Sequence[Runs], random: np.random.Generator) -> Runs:
    """The runs with a random augmented Chebyshev weighting of their values."""
    values = np.stack([runs.values for runs in objectives], 1)
    measured = values[~objectives[0].bounded]
    front = measured[non_dominated(measured)]
    # The span of the Pareto set, so that weights mean the same whatever the worst trials were.
    span = np.ptp(front if len(front) > 1 else measured, axis=0)
    # Beyond the best of each objective, or nothing would be gained by a better one.
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
    """The acquisition for one more configuration beside the running ones.

    Args:
        processes: one for each objective.
        incumbents: [k, d], rows that were measured and are acceptable.
    """
    expected = np.stack([one.posterior(running[:0]).predict(incumbents)[0] for one in processes], 1)
    worst = _inferred(expected)
    if settings.reference is not None:
        worst = np.concatenate(
            [one.scale.apply(np.array([value])) for one, value in zip(processes, settings.reference, strict=True)]
        )
    # Without noise the values of all that was measured are known.
    uncertain = incumbents[_fronts_first(expected)][:_BASELINE] if settings.noisy else incumbents[:0]
    return LogHypervolumeImprovement(
        [one.posterior(np.vstack([uncertain, running])) for one in processes],
        known=expected[:0] if settings.noisy else expected,
        reference=worst,
        draws=_DRAWS,
        random=random,
    )


class LogHypervolumeImprovement:
    """The logarithm of the expected growth of the volume that outcomes, larger being better, dominate.

    Args:
        posteriors: of m independent objectives; their extra points are the configurations whose values are drawn.
        known: [k, m], outcomes that are certain.
        reference: [m], where the volume begins.
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
        # [draws, cells, m]; cells that fill up have no extent.
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
        """[b] values; [b, draws, cells] shares in them; and for each objective the parts of the derivatives."""
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
    """The logarithm of how far a normal value is expected to reach into [low, high], and its derivatives.

    E[min(f, high) - low, at least 0] is the improvement on `low` less that on `high`.
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
    """[c, m], [c, m]: the corners of boxes that make up what is above the reference and dominated by no value."""
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
    """[m]: a little beyond the worst of the Pareto set of these outcomes, and of all but a tenth of them.

    Of the set alone, it would keep a set that is still narrow from growing.
    """
    front = expected[non_dominated(-expected)]
    span = np.ptp(front, axis=0)
    span = np.where(span > 0.0, span, np.ptp(expected, axis=0))
    beyond = front.min(0) - _BEYOND_WORST * np.where(span > 0.0, span, 1.0)
    return np.asarray(np.minimum(beyond, np.quantile(expected, 0.1, axis=0)))


def _fronts_first(expected: FloatArray) -> FloatArray:
    """Places, those of the Pareto set first, then those of the set without it, and so on."""
    order: list[int] = []
    left = np.arange(len(expected))
    while len(left):
        front = non_dominated(-expected[left])
        order += left[front].tolist()
        left = left[~front]
    return np.array(order)
