"""Problems with outcome constraints that nobody here wrote: functions of BoTorch, with noise.

A constraint's slack, which must not be negative, is in units of its standard deviation over the space. A noisy run
disturbs it by the relative noise of the objective. As in `problems`, the distance is 0 at the optimum and 1 at the
median, here of the acceptable configurations. A configuration that truly breaks a constraint is at distance 1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from botorch.test_functions import synthetic
from torch import Tensor

from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, Space
from tests.benchmarks.quality.case import BUDGET, Measure

SUITE = "constrained"
_SAMPLE = 4000
# Rounding of what lies on the edge.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ConstrainedCase:
    """A function of BoTorch with the standard deviation of its noise."""

    name: str
    function: synthetic.ConstrainedSyntheticTestFunction
    noise: float
    batch: int = 1
    budget: int = BUDGET

    @functools.cached_property
    def space(self) -> Space:
        """One parameter for each dimension."""
        bounds = self._bounds.T.tolist()
        return Space.build([FloatParameter(f"x{place}", low, high) for place, (low, high) in enumerate(bounds)])

    @property
    def _bounds(self) -> Tensor:
        """The least and the largest value of each dimension, [2, d]."""
        return cast(Tensor, self.function.bounds)

    @functools.cached_property
    def problem(self) -> Problem:
        """The problem as the service has it."""
        limits = [f"slack{place} >= 0" for place in range(self.function.num_constraints)]
        objectives = [Objective("seconds", "minimize")]
        return Problem.build(self.space, objectives, outcome_constraints=limits)

    def runs(self, seed: int) -> Measure:
        """Return a function that evaluates a configuration; `seed` determines the noise."""
        random = np.random.default_rng([seed, 5])

        def measure(configuration: Configuration) -> dict[str, float]:
            value, slacks = self._truth(configuration)
            found = {"seconds": (1.0 + value) * math.exp(self.noise * random.normal())}
            return found | {f"slack{n}": slack + self.noise * random.normal() for n, slack in enumerate(slacks)}

        return measure

    def judge(self, recommended: Sequence[Configuration]) -> float:
        """Return the distance to the optimum, in medians; 1 for a configuration that breaks a constraint."""
        value, slacks = self._truth(*recommended)
        return value if min(slacks) >= -_ROUNDING else 1.0

    def _truth(self, configuration: Configuration) -> tuple[float, list[float]]:
        """Return the distance of the objective's value and the slacks, without noise."""
        row = torch.tensor([[float(configuration[name]) for name in self.space.names()]], dtype=torch.double)
        best, size, units = self._scale
        slacks = self.function.evaluate_slack(row)[0] / units
        return (float(self.function(row)[0]) - best) / size, slacks.tolist()

    @functools.cached_property
    def _scale(self) -> tuple[float, float, Tensor]:
        """Return the least acceptable value, the acceptable median less that, and the units of the slacks."""
        low, high = self._bounds
        generator = torch.Generator().manual_seed(1)
        rows = low + (high - low) * torch.rand(_SAMPLE, self.function.dim, dtype=torch.double, generator=generator)
        slacks = self.function.evaluate_slack(rows)
        acceptable = self.function(rows)[(slacks >= 0.0).all(1)]
        best = self.function.optimal_value
        return best, float(acceptable.median()) - best, slacks.std(0)


def cases() -> list[ConstrainedCase]:
    """Return the problems whose slacks are not much smaller than the noise."""
    return [
        ConstrainedCase("gramacy 2-d, 5 %", synthetic.ConstrainedGramacy(), 0.05),
        ConstrainedCase("hartmann 6-d, 5 %", synthetic.ConstrainedHartmann(), 0.05),
        ConstrainedCase("pressure vessel 4-d, 5 %", synthetic.PressureVessel(), 0.05),
    ]
