"""The common part of `ga`, `sa` and `nsga2`: the start, the records of measurements, the search for new suggestions.

The finished trials, in the order in which they finished, determine the whole state. An algorithm that received its
history at once and one that received it in parts therefore suggest the same. The state of a trial determines what an
algorithm learns from it:

- COMPLETED: its metrics; several trials of one configuration count as their median. If a metric is missing or not
  finite, the trial shows only that the configuration works.
- PRUNED: the configuration is at least as bad as the bound and as the median of the measured configurations.
- INFEASIBLE: the configuration is never suggested again.
- FAILED: nothing, because the machine was at fault. The configuration may be suggested once more, but not a third time.

Only a resampling policy repeats a measurement. A heuristic suggests new configurations as long as it finds any, near
its proposal or else anywhere. After that, a study without noise is exhausted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.classic.operators import Genetics
from service.algorithms.designs.part import FixedKey, fixed_key, fixed_of, seeded
from service.algorithms.start import start_design
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

_MOST_FAILURES = 2
# The number of attempts with each way to find a new configuration before the next way is tried.
_TRIES = 30
_REMEMBERED_PARTS = 16


class Record:
    """The results of the finished trials of one configuration."""

    def __init__(self, problem: Problem, configuration: Configuration) -> None:
        self.configuration = configuration
        self.median: FloatArray | None = None
        """The objectives, [m], times their signs; None while no trial has completed or was pruned."""
        self.pruned = False
        """Return whether `median` is only a bound, which may be minus infinity."""
        self.infeasible = False
        self.failures = 0
        self.trials = 0
        """The number of trials that did not fail."""
        self._problem = problem
        self._values: list[FloatArray] = []
        self._bounds: list[FloatArray] = []
        self._broken = 0

    @property
    def measured(self) -> bool:
        """Return whether a trial has completed with all metrics or was pruned, and none was infeasible."""
        return self.median is not None and not self.infeasible

    @property
    def acceptable(self) -> bool:
        """Return whether more than half of its completed trials met the outcome constraints."""
        return 2 * self._broken < max(len(self._values), 1)

    @property
    def hopeless(self) -> bool:
        """Return whether it must not be suggested again, even in a noisy study."""
        return self.infeasible or self.failures >= _MOST_FAILURES

    def learn(self, trial: TrialRecord) -> None:
        """Add a finished trial of the configuration."""
        if trial.state == TrialState.FAILED:
            self.failures += 1
            return
        self.trials += 1
        if trial.state == TrialState.INFEASIBLE:
            self.infeasible = True
            return
        metrics = [trial.metrics.get(metric, np.nan) for metric in self._problem.metrics]
        values = self._problem.signs() * np.array(metrics, dtype=np.float64)
        if trial.state == TrialState.PRUNED:
            self._bounds.append(np.where(np.isfinite(values), values, -np.inf))
        elif np.isfinite(values).all():
            self._values.append(values)
            self._broken += not self._problem.acceptable(trial.metrics)
        else:
            return
        self.pruned = not self._values
        if self.pruned:
            self.median = np.max(self._bounds, axis=0)
        elif self._bounds:
            # A pruned trial is no better than a typical one.
            typical = np.median(self._values, axis=0)
            self.median = np.median([*self._values, *(np.maximum(one, typical) for one in self._bounds)], axis=0)
        else:
            self.median = np.median(self._values, axis=0) if len(self._values) > 1 else values


class Heuristic(Algorithm):
    """See the module. All heuristics have the options `initial` and `start_design`."""

    cost = Cost.CHEAP
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        self._initial = self._whole("initial")
        self._start_of = lru_cache(_REMEMBERED_PARTS)(self._make_start)
        self._genetics_of = lru_cache(_REMEMBERED_PARTS)(self._make_genetics)
        self._forget()

    def update(self, finished: Sequence[TrialRecord]) -> None:
        trials = sorted(finished, key=_order)
        if trials and self._trials and _order(trials[0]) < _order(self._trials[-1]):
            # A trial was passed late. The order is part of the state, so learning starts from the beginning.
            trials = sorted([*self._trials, *trials], key=_order)
            self._forget()
        for trial in trials:
            key = self.problem.space.key(trial.configuration)
            record = self._records.get(key)
            if record is None:
                record = self._records[key] = Record(self.problem, trial.configuration)
            record.learn(trial)
            self._trials.append(trial)
            if record.hopeless:
                self._hopeless.add(key)
            if record.trials:
                self._seen.add(key)
            self._learn(trial, key, record)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        place = fixed_key(fixed)
        genetics = self._genetics_of(place)
        running = {self.problem.space.key(trial.configuration) for trial in pending}
        # Trials count from 1. The trials of a batch that is not stored yet have no number.
        number = max((trial.number for trial in (*self._trials, *pending)), default=0)
        number += sum(trial.number == 0 for trial in pending)
        found: list[Configuration] = []
        while len(found) < count:
            number += 1
            # The generator differs for every suggestion and is the same if a suggestion is repeated.
            random = seeded(self.seed, len(self._trials), len(pending) + len(found))
            configuration: Configuration | None = None
            if len(self._seen | running) < self._initial:
                taken = running | self._seen | self._hopeless
                start = self._start_of(place)
                configuration = next((dict(one) for one in start if self.problem.space.key(one) not in taken), None)
            if configuration is None:
                configuration = self._new(genetics, number, running, random)
            if configuration is None:
                return Batch(tuple(found), cursor, True)
            found.append(configuration)
            running.add(self.problem.space.key(configuration))
        return Batch(tuple(found), cursor, False)

    @abstractmethod
    def _propose(self, genetics: Genetics, number: int, random: np.random.Generator) -> Configuration | None:
        """Return the heuristic's proposal for trial `number`; None if it has nothing to start from."""

    def _learn(self, trial: TrialRecord, key: str, record: Record) -> None:
        """Learn from a trial, which `record` already includes. Trials come in the order in which they finished."""

    def _forget(self) -> None:
        """Reset the state to the beginning."""
        self._trials: list[TrialRecord] = []
        self._records: dict[str, Record] = {}
        self._seen: set[str] = set()
        self._hopeless: set[str] = set()

    def _typical(self) -> FloatArray:
        """Return the median, [m], of the measured configurations; a pruned configuration is at least as bad."""
        known = [one.median for one in self._records.values() if one.measured and not one.pruned]
        return np.median(np.array(known), axis=0) if known else np.zeros(len(self.problem.objectives))

    def _values(self, records: Sequence[Record]) -> FloatArray:
        """Return the objectives, [n, m], of measured configurations; smaller is better."""
        values = np.array([one.median for one in records]).reshape(-1, len(self.problem.objectives))
        pruned = [place for place, one in enumerate(records) if one.pruned]
        if pruned:
            values[pruned] = np.maximum(values[pruned], self._typical())
        return values

    def _whole(self, option: str) -> int:
        value = self.options[option]
        assert isinstance(value, int)
        return value

    def _number(self, option: str) -> float:
        value = self.options[option]
        assert isinstance(value, int | float)
        return float(value)

    # New configurations

    def _new(
        self,
        genetics: Genetics,
        number: int,
        running: Set[str],
        random: np.random.Generator,
    ) -> Configuration | None:
        found = self._free(genetics, number, running | self._seen | self._hopeless, random)
        if found is None and self.problem.noisy:
            # Only replicates are left.
            found = self._free(genetics, number, running | self._hopeless, random)
            found = found or self._free(genetics, number, self._hopeless, random)
        return found

    def _free(
        self,
        genetics: Genetics,
        number: int,
        taken: Set[str],
        random: np.random.Generator,
    ) -> Configuration | None:
        """Return the heuristic's proposal, or a free configuration near it; None if all are taken."""
        key = self.problem.space.key
        for configuration in self._candidates(genetics, number, random):
            if key(configuration) not in taken:
                return configuration
        return genetics.feasible.unseen(taken, random)

    def _candidates(self, genetics: Genetics, number: int, random: np.random.Generator) -> Iterator[Configuration]:
        """Yield feasible configurations, the heuristic's proposals and then neighbours further and further away."""
        latest: Configuration | None = None
        for _ in range(_TRIES):
            proposed = self._propose(genetics, number, random)
            if proposed is not None:
                latest = proposed
                yield proposed
        for _ in range(_TRIES if latest is not None else 0):
            assert latest is not None
            latest = genetics.repair(genetics.neighbour(latest, random), latest, random)
            yield latest

    def _make_genetics(self, place: FixedKey) -> Genetics:
        return Genetics(self.problem.space, fixed_of(place))

    def _make_start(self, place: FixedKey) -> list[Configuration]:
        design = self.options["start_design"]
        assert isinstance(design, str)
        return start_design(design, self.problem, self._initial, self.seed, fixed_of(place))


def ranked(records: Sequence[Record], values: FloatArray) -> npt.NDArray[np.intp]:
    """Return the places, [n], of measured configurations, the best first.

    Configurations that meet the outcome constraints come first, then the order is by `values`, [n], of one objective.
    """
    broken = np.array([not one.acceptable for one in records], dtype=np.bool_)
    return np.lexsort((values, broken))


def _order(trial: TrialRecord) -> tuple[int, int]:
    return trial.revision, trial.number
