"""The level of each context, relative to which values are modelled.

A context often changes all values by a factor: a slow disk gives a tenth of the answers of a fast one. One process over
the values themselves would see large differences between contexts and hardly any within the context of small values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from service.core.context import context_key
from service.core.encoding import FloatArray
from service.core.problem import Problem
from service.core.space import Configuration
from service.core.trial import TrialRecord


class Levels:
    """The size of the default's first value in each context.

    There are none, so that values are modelled as they are, for several objectives, for values of both signs, with
    cheaper values of a variable, and as long as a context with trials has no value of the default.
    """

    def __init__(self, problem: Problem, trials: Sequence[TrialRecord]) -> None:
        self._context = problem.context
        self._known: dict[tuple[object, ...], float] = {}
        if not problem.context or problem.context.has_cheaper or len(problem.objectives) > 1:
            return
        metric, default = problem.metrics[0], problem.context.settings(problem.space.default())
        known: dict[tuple[object, ...], float] = {}
        seen, signs = set(), set()
        for trial in trials:
            value = trial.metrics.get(metric)
            if value is None or not np.isfinite(value):
                continue
            key = context_key(problem.context.of(trial.configuration))
            seen.add(key)
            signs.add(np.sign(value))
            if problem.context.settings(trial.configuration) == default:
                known.setdefault(key, abs(float(value)))
        if seen == known.keys() and len(signs) == 1 and 0.0 not in signs:
            self._known = known

    def of(self, configurations: Iterable[Configuration]) -> FloatArray:
        """Return the level of each configuration's context: a positive number; 1 if there are no levels."""
        found = [self._known.get(context_key(self._context.of(one)), 1.0) for one in configurations]
        return np.array(found) if self._known else np.ones(len(found))
