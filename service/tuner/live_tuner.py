"""The tuner of a live study: one candidate at a time, from the safe set around the settings in force."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from service.algorithms.base import NOTHING_FIXED, Cost
from service.core.errors import JsonValue
from service.core.live import LiveRecord
from service.core.problem import Problem
from service.core.space import Scalar
from service.core.trial import TrialRecord
from service.tuner import live
from service.tuner.method import LiveRules, Method
from service.tuner.recommendation import Found, Recommendation
from service.tuner.suggestion import Suggestion, Suggestions
from service.tuner.tuner import Tuner, fits


class LiveTuner(Tuner):
    """A tuner whose candidates are compared with the settings in force, one after the other."""

    def __init__(self, problem: Problem, method: Method) -> None:
        """Raises InvalidInput as `Method.completed` does."""
        super().__init__(problem, method)
        assert method.live is not None
        self._rules = method.live
        # The models of the safe set are torch's.
        self.cost = Cost.COSTLY
        self.uses_history = True

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Suggestions:
        """Return the next candidate. The space is exhausted if nothing new near the settings in force is safe.

        The caller has at most one trial at a time, because each follows from the last result.
        """
        if count < 1 or self.closing is not None:
            return Suggestions((), cursor, False)
        found = live.suggest(
            self.problem,
            records_of(self.problem, self.finished),
            step=self._rules.step,
            limits=limits_of(self._rules, self.finished),
            # A candidate that was declined is not suggested again.
            seed=self.method.seed + len(self.finished),
        )
        if found is None or not fits(found.configuration, fixed):
            return Suggestions((), cursor + 1, True)
        planned = {"expected": found.expected, "worst": found.worst}
        return Suggestions((Suggestion(found.configuration, "suggested", planned=planned),), cursor + 1, False)

    def found(self, *, costly: bool = True) -> Found | None:
        return None

    def recommend(self, *, costly: bool = True) -> Recommendation | None:
        """Return None: what is recommended is what is in force (`results/live_verdict.py`)."""
        return None

    def dump(self) -> JsonValue:
        return None


def records_of(problem: Problem, finished: Sequence[TrialRecord]) -> list[LiveRecord]:
    """Return the trials whose candidates have been in force, as the search reads them."""
    outcomes = [(trial, trial.live) for trial in finished if trial.live is not None and trial.live.is_settled]
    return [one.record(problem.space, trial.configuration) for trial, one in outcomes]


def limits_of(rules: LiveRules, finished: Sequence[TrialRecord]) -> dict[str, float]:
    """Return the logarithm of the ratio to the settings in force that each guard allows now.

    Before the first result, only the study's own limits that are ratios are known.
    """
    known = [one.live.next_limits for one in finished if one.live is not None and one.live.is_settled]
    return dict(known[-1]) if known else {metric: math.log(ratio) for metric, ratio in rules.ratios.items()}
