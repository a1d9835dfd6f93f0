"""Problems that nobody here wrote: the suites of COCO [hansen-2021], in five dimensions.

COCO calls a function with one shift and rotation an instance. One run is made on each instance. The optimum is not
known to the program, so a "distance" is the true value of the configuration, which is enough for ranks.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.core.problem import Objective, Problem
from service.core.space import Configuration, FloatParameter, IntParameter, Parameter, Space
from tests.benchmarks.quality.case import BUDGET, Measure

DIMENSIONS = 5
# The instances for reports by suite, and those for development.
INSTANCES: Mapping[str, tuple[str, str]] = {
    "bbob": ("bbob", "1-2"),
    "bbob-mixint": ("bbob-mixint", "1-2"),
    "bbob-noisy": ("bbob-noisy", "1-2"),
    "bbob-noisy-development": ("bbob-noisy", "3-4"),
}
# The true value of a noisy function is the median of so many evaluations. The noise of the suite is symmetric or
# increases with the value, so that medians have the order of the undisturbed values.
_EVALUATIONS = 10_001


@dataclass(frozen=True)
class CocoCase:
    """One instance of one function of a suite."""

    suite: str
    name: str
    batch: int = 1
    budget: int = BUDGET

    @functools.cached_property
    def _function(self) -> Any:
        return _suite(self.suite).get_problem(self.name)

    @functools.cached_property
    def space(self) -> Space:
        """One parameter for each dimension; integers come first, as in COCO."""
        made: list[Parameter] = []
        bounds = zip(self._function.lower_bounds, self._function.upper_bounds, strict=True)
        for place, (low, high) in enumerate(bounds):
            if place < self._function.number_of_integer_variables:
                made.append(IntParameter(f"x{place}", min=int(low), max=int(high)))
            else:
                made.append(FloatParameter(f"x{place}", min=float(low), max=float(high)))
        return Space.build(made)

    @functools.cached_property
    def problem(self) -> Problem:
        """The problem as the service has it."""
        noisy = INSTANCES[self.suite][0] == "bbob-noisy"
        return Problem.build(self.space, [Objective("seconds", "minimize")], noisy=noisy)

    def runs(self, seed: int) -> Measure:
        """Return a function that evaluates a configuration; the noise is COCO's own, whatever the seed."""
        return lambda configuration: {"seconds": float(self._function(self._row(configuration)))}

    def judge(self, recommended: Sequence[Configuration]) -> float:
        """Return the true value of the recommended configuration."""
        row = self._row(*recommended)
        count = _EVALUATIONS if self.problem.noisy else 1
        return float(np.median([self._function(row) for _ in range(count)]))

    def _row(self, configuration: Configuration) -> list[float]:
        return [float(configuration[name]) for name in self.space.names()]


def cases(suite: str) -> list[CocoCase]:
    """Return the problems of one of `INSTANCES`."""
    return [CocoCase(suite, name) for name in _suite(suite).ids()]


@functools.cache
def _suite(name: str) -> Any:
    import cocoex

    suite, instances = INSTANCES[name]
    return cocoex.Suite(suite, "", f"dimensions: {DIMENSIONS} instance_indices: {instances}")
