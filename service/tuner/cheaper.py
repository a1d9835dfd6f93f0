"""Cheaper runs: trials in a context that costs less, from which the algorithm learns for the context that counts.

The default is measured in each cheaper context first, if there is one. From then on, at most half of the time goes to
cheaper runs. While their share is less, the algorithm suggests a configuration for the context that counts. The study
measures it in the context where a second of running time tells the most about its value in the context that counts,
which may be that context itself. A context without measurements comes first, because its cost is not known. Otherwise
the study looks at the configurations that were measured in cheaper runs alone and probably work. It measures the one
with the best prediction in the context that counts, if it seems better than the ones that were measured there.
[kandasamy-2017, section 3] also chooses the configuration first and then the cheapest run that tells something.

A cheaper context in which no configuration works is given up. Measurements that users add teach the algorithm, but the
study has spent no time on them.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from service.algorithms.base import Algorithm
from service.algorithms.start import default_first
from service.core.context import context_key
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord
from service.tuner.tuner import fits

_BAD = (TrialState.INFEASIBLE, TrialState.FAILED)
# After so many infeasible trials and none that worked, a cheaper context is given up.
_MOST_INFEASIBLE = 3
_PROBABLE = 0.5


@dataclass(frozen=True)
class Trials:
    """The trials in one context, without those of the final check, and the keys of their configurations."""

    trials: tuple[TrialRecord, ...] = ()
    keys: frozenset[str] = frozenset()

    @cached_property
    def cost(self) -> float | None:
        """The median running time of the trials that worked; None if it is not known."""
        found = [one.seconds for one in self.trials if one.state == TrialState.COMPLETED and one.seconds is not None]
        return statistics.median(found) if found else None

    @property
    def begun(self) -> int:
        """The number of trials that the study has begun."""
        return sum(trial.origin != "added" for trial in self.trials)

    @property
    def is_untried(self) -> bool:
        """Return whether nothing was measured and nothing is being measured."""
        return all(trial.state in _BAD for trial in self.trials)

    @property
    def works(self) -> bool:
        """Return whether a trial may work."""
        return not self.is_untried or self._infeasible < _MOST_INFEASIBLE

    @property
    def _infeasible(self) -> int:
        return sum(trial.state == TrialState.INFEASIBLE for trial in self.trials)


class Cheaper:
    """The choice between a context and its cheaper ones. It follows from the trials that `plus` adds."""

    def __init__(self, problem: Problem, context: Configuration) -> None:
        self._problem, self._context = problem, context
        self._cheaper = problem.context.cheaper(context)
        self._trials = {context_key(one): Trials() for one in (context, *self._cheaper)}

    def plus(self, trials: Sequence[TrialRecord]) -> Cheaper:
        """Return the choice after further trials, in any context."""
        found: dict[Any, list[TrialRecord]] = {}
        for trial in trials:
            name = context_key(self._problem.context.of(trial.configuration))
            if name in self._trials and trial.origin != "check":
                found.setdefault(name, []).append(trial)
        changed = copy(self)
        changed._trials = self._trials | {
            name: Trials(
                (*self._trials[name].trials, *mine),
                self._trials[name].keys | {self._key(trial.configuration) for trial in mine},
            )
            for name, mine in found.items()
        }
        return changed

    def default(self, fixed: Mapping[str, Scalar]) -> Configuration | None:
        """Return the default in the first cheaper context that lacks it; None if it was begun in all of them."""
        for context in self._cheaper:
            configuration = default_first(self._problem.within(context).space, {**fixed, **context})
            if configuration is not None and self._key(configuration) not in self._of(context).keys:
                return configuration
        return None

    def is_due(self) -> bool:
        """Return whether cheaper runs have had less time than the others."""
        spent = sum(self._of(one).begun * self._cost(one) for one in self._cheaper)
        return spent < self._of(self._context).begun * self._cost(self._context)

    def moved(self, configuration: Configuration, algorithm: Algorithm) -> Configuration:
        """Return the configuration in an untried context, or where a run tells the most about it for each second."""
        contexts = [one for one in self._cheaper if self._of(one).works]
        moved = [{**configuration, **one} for one in contexts]
        free = [
            (context, one)
            for context, one in zip(contexts, moved, strict=True)
            if self._key(one) not in self._of(context).keys and self._problem.space.feasible(one)
        ]
        for context, one in free:
            if self._of(context).is_untried:
                return one
        offered = [(self._context, configuration), *free]
        told = algorithm.knowledge(configuration, [one for _, one in offered]) or [1.0] * len(offered)
        worth = [share / self._cost(context) for share, (context, _) in zip(told, offered, strict=True)]
        return offered[worth.index(max(worth))][1]

    def promoted(self, algorithm: Algorithm, fixed: Mapping[str, Scalar]) -> Configuration | None:
        """Return the configuration with the best prediction, if only its cheaper runs are known; otherwise None."""
        moved = [
            {**trial.configuration, **self._context}
            for context in self._cheaper
            for trial in self._of(context).trials
            if trial.state == TrialState.COMPLETED and self._problem.acceptable(trial.metrics)
        ]
        offered = {self._key(one): one for one in moved if fits(one, fixed)}
        known = self._of(self._context).keys
        left = [one for key, one in offered.items() if key not in known and self._problem.space.feasible(one)]
        left = [one for one, chance in zip(left, algorithm.chances(left), strict=True) if chance >= _PROBABLE]
        measured = [one.configuration for one in self._of(self._context).trials if one.state == TrialState.COMPLETED]
        prediction = algorithm.predict([*left, *measured]) if left else None
        if prediction is None:
            return None
        best = int(prediction.mean.argmin())
        return left[best] if best < len(left) else None

    def _of(self, context: Configuration) -> Trials:
        return self._trials[context_key(context)]

    def _cost(self, context: Configuration) -> float:
        """Return the median running time in a context; while it is unknown, that of the context that counts, or 1."""
        own = self._of(self._context).cost or 1.0
        return self._of(context).cost or own

    def _key(self, configuration: Configuration) -> str:
        return self._problem.space.key(configuration)
