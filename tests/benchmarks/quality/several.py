"""Problems with several objectives that nobody here wrote: functions of BoTorch, with noise.

As in `problems`, a measured value is 1 at the least value and 2 at the median of the space, before the noise. The
distance of a set of configurations is the share of the largest hypervolume that its true values leave out.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from botorch.test_functions import multi_objective
from botorch.test_functions.base import MultiObjectiveTestProblem
from torch import Tensor

from service.core.encoding import FloatArray
from service.core.pareto import hypervolume
from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from tests.benchmarks.quality.case import BUDGET, Measure

SUITE = "several"
_SAMPLE = 4000


@dataclass(frozen=True)
class SeveralCase:
    """A function of BoTorch with the standard deviation of its noise."""

    name: str
    function: MultiObjectiveTestProblem
    noise: float
    batch: int = 1
    budget: int = BUDGET

    @functools.cached_property
    def space(self) -> Space:
        """One parameter for each dimension."""
        bounds = cast(Tensor, self.function.bounds).T.tolist()
        return Space.build([FloatParameter(f"x{place}", low, high) for place, (low, high) in enumerate(bounds)])

    @functools.cached_property
    def problem(self) -> Problem:
        """The problem as the service has it."""
        metrics = [f"value{place}" for place in range(self.function.num_objectives)]
        return Problem.build(self.space, [Objective(metric, "minimize") for metric in metrics])

    def runs(self, seed: int) -> Measure:
        """Return a function that evaluates a configuration; `seed` determines the noise."""
        random = np.random.default_rng([seed, 5])

        def measure(configuration: Configuration) -> dict[str, float]:
            least, size = self._scale
            values = 1.0 + (self._truth([configuration])[0] - least) / size
            noise = np.exp(self.noise * random.normal(size=len(values)))
            return dict(zip(self.problem.metrics, (values * noise).tolist(), strict=True))

        return measure

    def judge(self, recommended: Sequence[Configuration]) -> float:
        """Return the share of the largest hypervolume that these configurations leave out."""
        return 1.0 - hypervolume(self._truth(recommended), np.asarray(self.function.ref_point)) / self.function.max_hv

    def _truth(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Return the values without noise, [n, m]."""
        rows = [[float(one[name]) for name in self.space.names()] for one in configurations]
        return np.asarray(self.function(torch.tensor(rows, dtype=torch.double)))

    @functools.cached_property
    def _scale(self) -> tuple[FloatArray, FloatArray]:
        """Return the least values of a sample, and the medians less these, [m] each."""
        low, high = cast(Tensor, self.function.bounds)
        generator = torch.Generator().manual_seed(1)
        rows = low + (high - low) * torch.rand(_SAMPLE, self.function.dim, dtype=torch.double, generator=generator)
        values = np.asarray(self.function(rows))
        return values.min(0), np.median(values, 0) - values.min(0)


def cases() -> list[SeveralCase]:
    """Return the problems, whose reference points and largest hypervolumes BoTorch knows."""
    return [
        SeveralCase("branin and currin 2-d, 5 %", multi_objective.BraninCurrin(), 0.05),
        SeveralCase("dtlz2 6-d, 5 %", multi_objective.DTLZ2(dim=6, num_objectives=2), 0.05),
        SeveralCase("vehicle safety 5-d, 3 objectives, 5 %", multi_objective.VehicleSafety(), 0.05),
        SeveralCase("car side impact 7-d, 4 objectives, 5 %", multi_objective.CarSideImpact(), 0.05),
    ]
