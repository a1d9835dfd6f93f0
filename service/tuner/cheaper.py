"""Cheaper runs: trials in a context that costs less, from which the algorithm learns for the context that counts.

The default is measured in each cheaper context first, if there is one. From then on, at most half of the time goes to
cheaper runs. While it is less, the algorithm suggests a configuration for the context that counts, and it is measured
in the context where a run tells the most about its value there for each second, which may be the context that counts; a
context without a trial comes first, because its cost is not known. Otherwise the configuration that is expected to be
the best of those with cheaper runs alone is measured in the context that counts. [kandasamy-2017, section 3] also
chooses the configuration first and then the cheapest run that tells something.

A cheaper context in which most trials fail is given up.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from service.algorithms.base import Algorithm
from service.algorithms.start import default_first
from service.core.context import context_key
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

_BAD = (TrialState.INFEASIBLE, TrialState.FAILED)
# With fewer bad trials than this, a cheaper context is not given up.
_FEW_BAD = 2


class Cheaper:
    """The choice between a context and its cheaper ones, from the trials that were begun in any of them."""

    def __init__(self, problem: Problem, context: Configuration, trials: Sequence[TrialRecord]) -> None:
        self._problem, self._context = problem, context
        self._contexts = (context, *problem.context.cheaper(context))
        self._trials: dict[Any, list[TrialRecord]] = {context_key(one): [] for one in self._contexts}
        for trial in trials:
            mine = self._trials.get(context_key(problem.context.of(trial.configuration)))
            if mine is not None and trial.origin != "check":
                mine.append(trial)
        self._keys = {name: {self._key(one.configuration) for one in mine} for name, mine in self._trials.items()}

    def default(self, fixed: Mapping[str, Scalar]) -> Configuration | None:
        """Return the default in the first cheaper context that lacks it; None if it was begun in all of them."""
        for context in self._contexts[1:]:
            configuration = default_first(self._problem.within(context).space, {**fixed, **context})
            if configuration is not None and self._key(configuration) not in self._begun(context):
                return configuration
        return None

    def is_due(self) -> bool:
        """Return whether cheaper runs have had less time than the others."""
        own, *cheaper = (len(self._of(one)) * self._cost(one) for one in self._contexts)
        return sum(cheaper) < own

    def moved(self, configuration: Configuration, algorithm: Algorithm) -> Configuration:
        """Return the configuration in an untried context, or where a run tells the most about it for each second."""
        taken = {key for context in self._contexts[1:] for key in self._begun(context)}
        offered = [{**configuration, **one} for one in self._contexts if self._works(one)]
        offered = [one for one in offered if self._key(one) not in taken and self._problem.space.feasible(one)]
        unknown = next((one for one in offered if self._is_untried(self._problem.context.of(one))), None)
        if unknown is not None:
            return unknown
        costs = [self._cost(self._problem.context.of(one)) for one in offered]
        told = algorithm.knowledge(configuration, offered) or [1.0] * len(offered)
        worth = [share / cost for share, cost in zip(told, costs, strict=True)]
        return offered[worth.index(max(worth))]

    def promoted(self, algorithm: Algorithm, fixed: Mapping[str, Scalar]) -> Configuration | None:
        """Return the configuration with the best prediction of those with cheaper runs alone; None without one."""
        known = self._begun(self._context)
        offered = {
            self._key(one): one
            for context in self._contexts[1:]
            for trial in self._of(context)
            if trial.state == TrialState.COMPLETED
            for one in [{**trial.configuration, **self._context}]
            if all(one.get(name) == value for name, value in fixed.items())
        }
        left = [one for key, one in offered.items() if key not in known and self._problem.space.feasible(one)]
        prediction = algorithm.predict(left) if left else None
        return None if prediction is None else left[int(prediction.mean.argmin())]

    def _of(self, context: Configuration) -> list[TrialRecord]:
        return self._trials[context_key(context)]

    def _begun(self, context: Configuration) -> set[str]:
        return self._keys[context_key(context)]

    def _is_untried(self, context: Configuration) -> bool:
        return all(trial.state in _BAD for trial in self._of(context))

    def _works(self, context: Configuration) -> bool:
        """Return whether trials work in a context; the one that counts has no alternative."""
        trials = self._of(context)
        bad = sum(trial.state in _BAD for trial in trials)
        return context == self._context or bad < _FEW_BAD or 2 * bad < len(trials)

    def _cost(self, context: Configuration) -> float:
        """Return the median running time in a context, or 1 if it is not known in all that work."""
        medians = {context_key(one): self._median(one) for one in self._contexts if self._works(one)}
        return (medians.get(context_key(context)) or 1.0) if all(medians.values()) else 1.0

    def _median(self, context: Configuration) -> float | None:
        trials = self._of(context)
        seconds = [one.seconds for one in trials if one.state == TrialState.COMPLETED and one.seconds is not None]
        return statistics.median(seconds) if seconds else None

    def _key(self, configuration: Configuration) -> str:
        return self._problem.space.key(configuration)
