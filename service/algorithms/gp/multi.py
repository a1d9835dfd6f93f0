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
import torch
from botorch.models.model_list_gp_regression import ModelListGP
from botorch.utils.multi_objective.box_decompositions import BoxDecompositionList, FastNondominatedPartitioning
from torch import Tensor

from service.algorithms.gp.acquisition import Analytic, log_improvement_of
from service.algorithms.gp.fits import Process
from service.algorithms.gp.measured_runs import Runs
from service.algorithms.gp.posterior import Posterior
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.pareto import non_dominated, reference_point
from service.core.problem import Problem

# The number of the volume's cells grows fast with the objectives. With more objectives than this, weightings are used.
_MOST_OBJECTIVES = 4
# The most configurations whose values are drawn, and the number of draws. With three objectives, up to 47 of 60 trials
# are in the Pareto set, and 8 draws of 64 configurations lead to sets as good as those of 16 draws of 24. A suggestion
# then takes 0.4 to 0.84 times the CPU.
_OF_TWO, _OF_MORE = (24, 16), (64, 8)
# The distance of an inferred reference point beyond the worst of the Pareto set, in spans of the set.
_BEYOND_WORST = 0.1
_BEYOND_BEST = 0.5
# A limit in standard deviations, against overflows.
_FARTHEST = 1e6
_LEAST_SHARE = 1e-12
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
) -> Analytic:
    """Return the acquisition for one more configuration in addition to the running ones.

    `processes` has one for each objective. `incumbents`: [k, d], acceptable rows with measurements.
    """
    expected = np.stack([one.alone.predict(incumbents)[0] for one in processes], 1)
    worst = _inferred(expected)
    if settings.reference is not None:
        worst = np.concatenate(
            [one.scale.apply(np.array([value])) for one, value in zip(processes, settings.reference, strict=True)]
        )
    most, draws = _OF_TWO if len(processes) == 2 else _OF_MORE
    # Without noise the values of all measured configurations are known.
    uncertain = incumbents[_fronts_first(expected)][:most] if settings.noisy else incumbents[:0]
    return LogHypervolumeImprovement(
        [one.posterior(np.vstack([uncertain, running])) for one in processes],
        known=expected[:0] if settings.noisy else expected,
        reference=worst,
        draws=draws,
        random=random,
    )


class LogHypervolumeImprovement(Analytic):
    """The logarithm of the expected growth of the volume that outcomes dominate; larger outcomes are better.

    `posteriors`: one for each of m independent objectives; their extra rows are the configurations whose values are
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
        super().__init__(ModelListGP(*(posterior.model for posterior in posteriors)))
        self._posteriors = posteriors
        pairs = [posterior.drawn(draws, random) for posterior in posteriors]
        self._white = [white for white, _ in pairs]
        drawn = torch.stack([values for _, values in pairs], -1).transpose(0, 1)
        certain = torch.from_numpy(known).expand(len(drawn), *known.shape)
        # The arrays are [draws, cells, m]; cells that only pad a draw have no extent.
        worst = torch.from_numpy(reference)
        boxes = [FastNondominatedPartitioning(worst, one) for one in torch.cat([certain, drawn], 1)]
        low, high = BoxDecompositionList(*boxes).get_hypercell_bounds()
        # Infinite ends would have gradients that are no numbers.
        high = high.clamp_max(_FARTHEST)
        self._empty = (high <= low).any(-1)
        self._edges = [_Edges.of(low[..., place], high[..., place]) for place in range(len(posteriors))]

    def values(self, rows: Tensor) -> Tensor:
        total = torch.zeros((), dtype=rows.dtype)
        for posterior, drawn, edges in zip(self._posteriors, self._white, self._edges, strict=True):
            white, deviation = posterior.project(rows)
            total = total + edges.log_reach(posterior.prior_mean + white.T @ drawn, deviation)
        total = total.where(~self._empty, -math.inf)
        return total.flatten(1).logsumexp(1) - math.log(total.shape[1])


@dataclass(frozen=True)
class _Edges:
    """The ends of all cells in one objective; each edge that several cells of a draw share is there once.

    `values` and `draws`: [e], of each edge. `low` and `high`: [draws * cells], the places of the cells' ends.
    """

    values: Tensor
    draws: Tensor
    low: Tensor
    high: Tensor

    @classmethod
    def of(cls, low: Tensor, high: Tensor) -> _Edges:
        """Return the edges of cells from `low` to `high`, [draws, cells]."""
        draws = torch.arange(len(low), dtype=low.dtype)[:, None].expand_as(low)
        ends = torch.stack([torch.stack([draws, draws]), torch.stack([low, high])]).flatten(1)
        (draw, value), places = torch.unique(ends, dim=1, return_inverse=True)
        first, last = places.reshape(2, -1)
        return cls(value, draw.long(), first, last)

    def log_reach(self, mean: Tensor, deviation: Tensor) -> Tensor:
        """Return the logarithms of a normal value's expected reach into each cell, [b, draws, cells].

        The reach of f is max(min(f, high) - low, 0); its mean is the expected improvement on `low` minus that on
        `high`. `mean`: [b, draws]. `deviation`: [b].
        """
        z = (mean.index_select(1, self.draws) - self.values) / deviation[:, None]
        improvements = log_improvement_of(z.clamp(-_FARTHEST, _FARTHEST))
        above_low, above_high = (improvements.index_select(1, places) for places in (self.low, self.high))
        share = (above_high - above_low).exp()
        reach = above_low + (1.0 - share).clamp_min(_LEAST_SHARE).log() + deviation.log()[:, None]
        return reach.reshape(*mean.shape, -1)


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
