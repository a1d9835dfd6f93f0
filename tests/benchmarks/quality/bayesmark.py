"""Problems that nobody here wrote: Bayesmark's tasks [turner-2021], in which scikit-learn's models are tuned.

The optimum is not known, so a "distance" is the loss of the configuration, which is enough for ranks. Of Bayesmark's
two metrics for each data set, one is used: the log loss, and for regression the squared error.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import Any

import numpy as np

from service.core.problem import Objective, Problem
from service.core.space import BoolParameter, Configuration, FloatParameter, IntParameter, Parameter, Space
from tests.benchmarks.quality.case import BUDGET, Measure
from tests.benchmarks.quality.peers.program import Program

SUITE = "bayesmark"
# The data sets with the metric; the one whose models take the longest to train comes last.
_DATA = {"breast": "nll", "iris": "nll", "wine": "nll", "boston": "mse", "diabetes": "mse", "digits": "nll"}
# Models whose training draws random numbers, and the others.
_RANDOM = ("DT", "MLP-adam", "MLP-sgd", "RF", "ada")
_MODELS = (*_RANDOM, "SVM", "kNN", "lasso", "linear")
# The loss of a recommendation is the mean of so many evaluations, with seeds that no search has.
_EVALUATIONS = 10
_FIRST_JUDGE = 1_000_000


@dataclass(frozen=True)
class BayesmarkCase:
    """One model on one data set."""

    model: str
    data: str
    batch: int = 1
    budget: int = BUDGET

    @property
    def name(self) -> str:
        """The name in tables."""
        return f"{self.model} {self.data}"

    @functools.cached_property
    def space(self) -> Space:
        """The model's hyper-parameters."""
        return Space.build([_parameter(one) for one in self._described])

    @functools.cached_property
    def problem(self) -> Problem:
        """The problem as the service has it."""
        return Problem.build(self.space, [Objective("seconds", "minimize")], noisy=self.model in _RANDOM)

    def runs(self, seed: int) -> Measure:
        """Return a function that trains the model; `seed` determines its random numbers."""
        numbers = count(1000 * seed)
        return lambda configuration: {"seconds": self._loss(configuration, next(numbers))}

    def judge(self, recommended: Sequence[Configuration]) -> float:
        """Return the mean loss of the recommended configuration."""
        (configuration,) = recommended
        evaluations = _EVALUATIONS if self.problem.noisy else 1
        return float(np.mean([self._loss(configuration, _FIRST_JUDGE + number) for number in range(evaluations)]))

    @functools.cached_property
    def _described(self) -> list[dict[str, Any]]:
        described: list[dict[str, Any]] = _tasks().answer({"task": self._task})
        return described

    @property
    def _task(self) -> list[str]:
        return [self.model, self.data, _DATA[self.data]]

    def _loss(self, configuration: Configuration, seed: int) -> float:
        return float(_tasks().answer({"task": self._task, "configuration": dict(configuration), "seed": seed}))


def cases() -> list[BayesmarkCase]:
    """Return all pairs of a model and a data set."""
    return [BayesmarkCase(model, data) for data, model in product(_DATA, _MODELS)]


def _parameter(one: dict[str, Any]) -> Parameter:
    match one["kind"]:
        case "bool":
            return BoolParameter(one["name"])
        case "int":
            return IntParameter(one["name"], min=one["min"], max=one["max"], log=one["log"])
    return FloatParameter(one["name"], min=one["min"], max=one["max"], log=one["log"])


@functools.cache
def _tasks() -> Program:
    return Program("bayesmark_tasks")
