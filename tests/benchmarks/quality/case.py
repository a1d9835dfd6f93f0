"""The interface of a problem, for an optimiser and for the judgement of its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from service.core.problem import Problem
from service.core.space import Configuration, Space

BUDGET = 60
# It returns the metrics of a run: those of the objectives and those that outcome constraints limit.
Measure = Callable[[Configuration], Mapping[str, float]]


class Case(Protocol):
    """One problem, with a number of trials at once and a budget of trials. Smaller values are better."""

    @property
    def name(self) -> str:
        """The name in tables."""
        ...

    @property
    def space(self) -> Space:
        """The space that is searched."""
        ...

    @property
    def problem(self) -> Problem:
        """The problem as the service has it."""
        ...

    @property
    def batch(self) -> int:
        """The number of trials at once."""
        ...

    @property
    def budget(self) -> int:
        """The number of trials."""
        ...

    def runs(self, seed: int) -> Measure:
        """Return a function that runs a configuration and returns the noisy metrics; `seed` determines the noise."""
        ...

    def judge(self, recommended: Sequence[Configuration]) -> float:
        """Return how far the truth about the recommended configuration is from the optimum, or its true value.

        With several objectives a Pareto set is recommended.
        """
        ...
