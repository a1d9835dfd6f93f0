"""The method for a study with a context: one algorithm for all contexts, and policies for each context.

The algorithm's model is over settings and context, so that it learns in one context for the others. A gain means
something within a context only. Resampling, pruning, stopping, the recommendation and the final check therefore see the
trials of one context: each context has a tuner of its own, for the same space with the context's values fixed, and all
of them share the algorithm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from service.algorithms.base import NOTHING_FIXED
from service.algorithms.start import default_first
from service.core.context import context_key
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord
from service.policies.check import FinalCheck
from service.policies.check_rounds import open_rounds
from service.policies.pruning import Running, Step
from service.tuner.cheaper import Cheaper
from service.tuner.live_tuner import LiveTuner
from service.tuner.method import Method
from service.tuner.recommendation import ContextTable, Recommendation
from service.tuner.suggestion import Closing, Suggestion, Suggestions
from service.tuner.tuner import NO_STEPS, Tuner, requested
from service.tuner.verdict import ContextCheck

# `gp` models settings and context together. `random` learns nothing, and so is as good in each context as in one.
CAPABLE = ("gp", "random")
LEARNING = ("gp",)


def tuner_for(problem: Problem, method: Method) -> Tuner:
    """Return the tuner that suits a problem. Raises InvalidInput as `Method.completed` and ContextualTuner do."""
    if method.live is not None:
        return LiveTuner(problem, method)
    return ContextualTuner(problem, method) if problem.context else Tuner(problem, method)


class ContextualTuner(Tuner):
    """A tuner whose problem has a context.

    A trial in a context outside of the table, which is possible with numbers, teaches the algorithm and nothing else.
    """

    def __init__(self, problem: Problem, method: Method) -> None:
        """Raises InvalidInput as `Method.completed` does, and for a method that cannot handle a context."""
        super().__init__(problem, method)
        if self.choice.name not in CAPABLE:
            allowed = f"an algorithm that can handle a context: {', '.join(CAPABLE)}"
            raise InvalidInput("algorithm.name", self.choice.name, allowed, problem="cannot handle a context")
        if self.method.stopping is not None and self.method.stopping.needs_prediction:
            allowed = "rules that need no model, for a study with a context"
            raise InvalidInput("stopping", json.dumps(self.method.stopping.to_json()), allowed)
        if self.choice.name not in LEARNING and problem.context.has_cheaper:
            allowed = f"an algorithm that learns from cheaper runs: {', '.join(LEARNING)}"
            raise InvalidInput("algorithm.name", self.choice.name, allowed, problem="cannot use cheaper values")
        self.uses_history = True
        contexts = problem.context.table()
        own = replace(
            self.method,
            algorithm=self.choice.name,
            algorithm_options=self.choice.options,
            budget=_share(method.budget, len(contexts)),
        )
        self._parts = {context_key(one): Tuner(problem.within(one), own, self._made) for one in contexts}
        self._contexts = {context_key(one): one for one in contexts}
        self._cheaper = (
            {name: Cheaper(problem, one) for name, one in self._contexts.items()} if problem.context.has_cheaper else {}
        )
        self._budget, self._inside, self._outside = method.budget, 0, 0

    def part(self, configuration: Mapping[str, Scalar]) -> Tuner | None:
        """Return the tuner of the context of a configuration; None outside of the table."""
        return self._parts.get(context_key(self.problem.context.of(configuration)))

    def close(self, closing: Closing | None) -> None:
        super().close(closing)
        for part in self._parts.values():
            part.close(closing)

    def limit(self, budget: int | None) -> None:
        self._budget = budget
        # Trials outside of the table, such as cheaper ones, never belong to the trials that its contexts share.
        if budget is not None and self._outside:
            budget = budget * self._inside // (self._inside + self._outside)
        for part in self._parts.values():
            part.limit(_share(budget, len(self._parts)))

    def update(self, finished: Sequence[TrialRecord], steps: Mapping[int, Sequence[Step]] = NO_STEPS) -> None:
        super().update(finished, steps)
        self._cheaper = {name: one.plus(finished) for name, one in self._cheaper.items()}
        # The budget does not count measurements that users add.
        mine = [trial for trial in finished if trial.is_of_search]
        inside = sum(self.part(trial.configuration) is not None for trial in mine)
        self._inside, self._outside = self._inside + inside, self._outside + len(mine) - inside
        self.limit(self._budget)
        for name, context in self._contexts.items():
            self._parts[name].update(self._of(context, finished), steps)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Suggestions:
        """Return the next measurements, as `Tuner.suggest` does.

        With the context among the fixed values, all of them are in this context. Otherwise each one is in the context
        of the table with the fewest trials, or in one that is cheaper. The default comes first in each context.
        """
        names = self.problem.context.names
        given = {name: fixed[name] for name in names} if set(names) <= set(fixed) else None
        waiting, items = list(pending), list[Suggestion]()
        left = [given] if given is not None else list(self._contexts.values())
        while left and len(items) < count:
            context = min(left, key=lambda one: self._begun(one, waiting))
            found, cursor = self._next(context, cursor, waiting, {**fixed, **context}, is_given=given is not None)
            if found is None:
                left.remove(context)
            else:
                items.append(found)
                waiting.append(requested(found.configuration, found.origin))
        return Suggestions(tuple(items), cursor, len(items) < count and self.closing is None)

    def found(self, *, costly: bool = True) -> ContextTable | None:
        rows = tuple(one for part in self._parts.values() if (one := part.recommend(costly=costly)) is not None)
        return ContextTable(rows) if rows else None

    def recommend(self, *, costly: bool = True) -> Recommendation | None:
        """Return None: the recommendation is a table (`found`)."""
        return None

    def check_runs(
        self,
        best: Configuration | Sequence[Configuration],
        count: int,
        pending: Sequence[TrialRecord] = (),
        policy: FinalCheck | None = None,
        *,
        most_open: int | None = None,
        first: int | None = None,
    ) -> list[Suggestion]:
        """Return the next runs of the final check, which runs in each context where the default is not best.

        `best` has the best configuration of each context. Each context has rounds of its own, with numbers that no
        other context has. The contexts take turns by rounds.
        """
        policy = self._policy(policy)
        waiting, found = list(pending), list[Suggestion]()
        while len(found) < count:
            run = self._next_check(self._checked_parts(best, waiting), policy, most_open)
            if run is None:
                break
            found.append(run)
            waiting.append(replace(requested(run.configuration, "check"), number=policy.after + 1, round=run.round))
        return found

    def spared(
        self, best: Configuration | Sequence[Configuration], pending: Sequence[TrialRecord], policy: FinalCheck
    ) -> list[int]:
        return [
            number
            for part, one, waiting in self._checked_parts(best, pending)
            for number in part.spared(one, waiting, policy)
        ]

    def _next_check(
        self,
        parts: Sequence[tuple[Tuner, Configuration, Sequence[TrialRecord]]],
        policy: FinalCheck,
        most_open: int | None,
    ) -> Suggestion | None:
        """Return the next run: one that a begun round lacks, or else the first one of the context with the fewest
        rounds."""
        rounds = [part.rounds(one, waiting, policy) for part, one, waiting in parts]
        first = 1 + max((each.number for own in rounds for each in own), default=0)
        opened = sum(open_rounds(own, policy.used(own, 2)) for own in rounds)
        rooms = [0] if most_open is not None and opened >= most_open else [0, None]
        for room in rooms:
            for place in sorted(range(len(parts)), key=lambda place: len(rounds[place])):
                part, one, waiting = parts[place]
                run = next(iter(part.check_runs(one, 1, waiting, policy, most_open=room, first=first)), None)
                if run is not None:
                    return run
        return None

    def _checked_parts(
        self, best: Configuration | Sequence[Configuration], pending: Sequence[TrialRecord]
    ) -> list[tuple[Tuner, Configuration, Sequence[TrialRecord]]]:
        """Return the tuner, the best configuration and the pending trials of each context with a check."""
        assert not isinstance(best, Mapping)
        parts = [(self.part(one), one) for one in best]
        return [
            (part, one, self._of(self.problem.context.of(one), pending))
            for part, one in parts
            if part is not None and not _is_default(part.problem, one)
        ]

    def checked_contexts(self, best: Sequence[Configuration], policy: FinalCheck) -> list[ContextCheck]:
        """Return the result of the final check in each context."""
        found = []
        for one in best:
            part = self.part(one)
            if part is not None:
                found.append(ContextCheck(one, part.checked(one, policy)))
        return found

    def _reason(self, seconds: float, node_hours: float, *, costly: bool) -> str | None:
        """Return the reason to end the search, once the stopping rule has one in every context; None before."""
        reasons = [part._reason(seconds, node_hours, costly=costly) for part in self._parts.values()]
        return next(iter(reasons)) if all(reasons) else None

    def _wants_repeats(self) -> bool:
        return any(part.again() is not None for part in self._parts.values())

    def prune(self, running: Running) -> str | None:
        part = self.part(running.configuration)
        return None if part is None else part.prune(running)

    def _next(
        self,
        context: Configuration,
        cursor: int,
        waiting: Sequence[TrialRecord],
        fixed: Mapping[str, Scalar],
        *,
        is_given: bool,
    ) -> tuple[Suggestion | None, int]:
        """Return the next measurement and the cursor after it; in no cheaper context if the context `is_given`."""
        part = self._parts.get(context_key(context))
        if part is not None:
            mine = self._of(context, waiting)
            default = default_first(part.problem.space, fixed)
            known = {part.problem.space.key(trial.configuration) for trial in [*part.finished, *mine]}
            if default is not None and part.problem.space.key(default) not in known and self.closing is None:
                return Suggestion(default, "default"), cursor
            again = part.again(mine, fixed)
            if again is not None:
                return Suggestion(again, "replicate", reason=part.repeat_reason), cursor
            if self.closing is None and self._cheaper and not is_given:
                cheaper = self._cheaper[context_key(context)].plus(waiting)
                return self._next_with_cheaper(cheaper, cursor, waiting, fixed)
        return self._suggested(cursor, waiting, fixed) if self.closing is None else (None, cursor)

    def _next_with_cheaper(
        self, cheaper: Cheaper, cursor: int, waiting: Sequence[TrialRecord], fixed: Mapping[str, Scalar]
    ) -> tuple[Suggestion | None, int]:
        """Return the next measurement in a context or in a cheaper one, and the cursor after it."""
        default = cheaper.default(fixed)
        if default is not None:
            return Suggestion(default, "default"), cursor
        is_due = cheaper.is_due()
        promoted = None if is_due else cheaper.promoted(self._made(), fixed)
        if promoted is not None:
            return Suggestion(promoted, "suggested"), cursor
        found, cursor = self._suggested(cursor, waiting, fixed)
        if is_due and found is not None:
            found = replace(found, configuration=cheaper.moved(found.configuration, self._made()))
        return found, cursor

    def _suggested(
        self, cursor: int, waiting: Sequence[TrialRecord], fixed: Mapping[str, Scalar]
    ) -> tuple[Suggestion | None, int]:
        """Return the algorithm's next suggestion, and the cursor after it."""
        batch = self._made().suggest(1, cursor=cursor, pending=waiting, fixed=fixed)
        found = next(iter(batch.configurations), None)
        return None if found is None else Suggestion(found, "suggested"), batch.cursor

    def _begun(self, context: Configuration, waiting: Sequence[TrialRecord]) -> int:
        """Return how many trials of the search a context has, without those that failed by the machine's fault."""
        part = self._parts.get(context_key(context))
        trials = [*(part.finished if part else ()), *self._of(context, waiting)]
        return sum(trial.state != TrialState.FAILED and trial.origin != "check" for trial in trials)

    def _of(self, context: Configuration, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
        wanted = context_key(context)
        return [trial for trial in trials if context_key(self.problem.context.of(trial.configuration)) == wanted]


def _share(budget: int | None, contexts: int) -> int | None:
    return None if budget is None else max(1, budget // contexts)


def _is_default(problem: Problem, configuration: Configuration) -> bool:
    return problem.space.key(configuration) == problem.space.key(problem.space.default())
