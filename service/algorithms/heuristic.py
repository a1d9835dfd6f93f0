"""What `ga`, `sa` and `nsga2` share: the start, what was measured, and never asking for the same twice.

Their state follows from the finished trials, in the order in which they finished, and from nothing else; so an
algorithm that was fed at once and one that was fed piece by piece suggest the same. What is learned from a trial, by
its state:

- COMPLETED: its metrics; several of one configuration count as their median. One whose metric is missing or not
  finite tells only that the configuration works.
- PRUNED: the configuration is at least as bad as the bound, and as the median of the configurations measured.
- INFEASIBLE: the configuration is never suggested again.
- FAILED: nothing, for it was the machine's fault. The configuration may be suggested once more, but not a third time.

Measuring a configuration again is a resampling policy's decision: a heuristic suggests new ones as long as it finds
any, near what it would have liked or else anywhere. After that, a study without noise is exhausted.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache
from itertools import chain, islice, takewhile

import numpy as np
import numpy.typing as npt

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.doe import Random
from service.algorithms.operators import Genetics
from service.algorithms.part import FixedKey, fixed_key, fixed_of, seeded
from service.algorithms.start import start_design
from service.core.encoding import FloatArray
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord

_MOST_FAILURES = 2
# So often each way to something new is tried before the next one is.
_TRIES = 30
# Where a finite space is searched in order: about half a second, and only when next to nothing is left of it.
_MOST_STEPS = 20_000
_REMEMBERED_PARTS = 16


class Record:
    """What the finished trials of one configuration tell."""

    def __init__(self, problem: Problem, configuration: Configuration) -> None:
        self.configuration = configuration
        self.median: FloatArray | None = None
        """[m], of the objectives times their signs; None while no trial of it was completed or pruned."""
        self.pruned = False
        """Whether `median` is a mere bound, which may be minus infinity."""
        self.infeasible = False
        self.failures = 0
        self.trials = 0
        """Those that did not fail."""
        self._problem = problem
        self._values: list[FloatArray] = []
        self._bounds: list[FloatArray] = []
        self._broken = 0

    @property
    def measured(self) -> bool:
        """Whether a trial of it was completed, with all metrics, or pruned, and none was infeasible."""
        return self.median is not None and not self.infeasible

    @property
    def acceptable(self) -> bool:
        """Whether more than half of its completed trials kept the outcome constraints."""
        return 2 * self._broken < max(len(self._values), 1)

    @property
    def hopeless(self) -> bool:
        """Whether it must not be suggested again, noise or not."""
        return self.infeasible or self.failures >= _MOST_FAILURES

    def learn(self, trial: TrialRecord) -> None:
        """Take in a finished trial of the configuration."""
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
            # What was cut off is no better than what was seen of the others.
            typical = np.median(self._values, axis=0)
            self.median = np.median([*self._values, *(np.maximum(one, typical) for one in self._bounds)], axis=0)
        else:
            self.median = np.median(self._values, axis=0) if len(self._values) > 1 else values


class Heuristic(Algorithm):
    """See the module. All have the options `initial` and `start_design`."""

    cost = Cost.CHEAP
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        self._initial = self._whole("initial")
        self._start_of = lru_cache(_REMEMBERED_PARTS)(self._make_start)
        self._draws = Random(problem, seed=seed, options={})
        self._genetics_of = lru_cache(_REMEMBERED_PARTS)(self._make_genetics)
        self._forget()

    def update(self, finished: Sequence[TrialRecord]) -> None:
        trials = sorted(finished, key=_order)
        if trials and self._trials and _order(trials[0]) < _order(self._trials[-1]):
            # One that was passed late: from the beginning, for the order is part of the state.
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
        # Trials count from 1; those of a batch that waits to be stored have no number yet.
        number = max((trial.number for trial in (*self._trials, *pending)), default=0)
        number += sum(trial.number == 0 for trial in pending)
        found: list[Configuration] = []
        while len(found) < count:
            number += 1
            # Fresh for every suggestion, and the same whenever it is made again.
            random = seeded(self.seed, len(self._trials), len(pending) + len(found))
            configuration: Configuration | None = None
            if len(self._seen | running) < self._initial:
                taken = running | self._seen | self._hopeless
                start = self._start_of(place)
                configuration = next((dict(one) for one in start if self.problem.space.key(one) not in taken), None)
            if configuration is None:
                configuration = self._new(genetics, number, running, fixed, random)
            if configuration is None:
                return Batch(tuple(found), cursor, True)
            found.append(configuration)
            running.add(self.problem.space.key(configuration))
        return Batch(tuple(found), cursor, False)

    @abstractmethod
    def _propose(self, genetics: Genetics, number: int, random: np.random.Generator) -> Configuration | None:
        """What the heuristic would like trial `number` to be; None where it has nothing to begin with."""

    def _learn(self, trial: TrialRecord, key: str, record: Record) -> None:
        """Take in a trial; `record` has it already. Trials come in the order in which they finished."""

    def _forget(self) -> None:
        """Back to the beginning."""
        self._trials: list[TrialRecord] = []
        self._records: dict[str, Record] = {}
        self._seen: set[str] = set()
        self._hopeless: set[str] = set()

    def _typical(self) -> FloatArray:
        """[m]: the median of the configurations measured; what a pruned one is at least as bad as."""
        known = [one.median for one in self._records.values() if one.measured and not one.pruned]
        return np.median(np.array(known), axis=0) if known else np.zeros(len(self.problem.objectives))

    def _values(self, records: Sequence[Record]) -> FloatArray:
        """[n, m]: objectives of measured configurations, better when smaller."""
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

    # Something new

    def _new(
        self,
        genetics: Genetics,
        number: int,
        running: Set[str],
        fixed: Mapping[str, Scalar],
        random: np.random.Generator,
    ) -> Configuration | None:
        found = self._free(genetics, number, running | self._seen | self._hopeless, fixed, random)
        if found is None and self.problem.noisy:
            # Only measuring again is left.
            found = self._free(genetics, number, running | self._hopeless, fixed, random)
            found = found or self._free(genetics, number, self._hopeless, fixed, random)
        return found

    def _free(
        self,
        genetics: Genetics,
        number: int,
        taken: Set[str],
        fixed: Mapping[str, Scalar],
        random: np.random.Generator,
    ) -> Configuration | None:
        """The heuristic's own proposal, or what comes nearest to one, that is not taken; None where all is."""
        key = self.problem.space.key
        for configuration in self._candidates(genetics, number, fixed, random):
            if key(configuration) not in taken:
                return configuration
        return None

    def _candidates(
        self, genetics: Genetics, number: int, fixed: Mapping[str, Scalar], random: np.random.Generator
    ) -> Iterator[Configuration]:
        """Feasible configurations, more and more remote from what the heuristic would like."""
        latest: Configuration | None = None
        for _ in range(_TRIES):
            proposed = self._propose(genetics, number, random)
            if proposed is not None:
                latest = proposed
                yield proposed
        for _ in range(_TRIES if latest is not None else 0):
            assert latest is not None
            latest = genetics.repair(genetics.neighbour(latest, random), latest, random) or latest
            yield latest
        yield from self._draws.suggest(_TRIES, cursor=int(random.integers(2**40)), fixed=fixed).configurations
        lattice = genetics.space.lattice
        if lattice is not None:
            # Every configuration: from a random one on, then those before it.
            start = int(random.random() * lattice.size)
            before = takewhile(lambda step: step[0] <= start, lattice.walk(0))
            for _, configuration in islice(chain(lattice.walk(start), before), _MOST_STEPS):
                if configuration is not None:
                    yield configuration

    def _make_genetics(self, place: FixedKey) -> Genetics:
        return Genetics(self.problem.space, fixed_of(place))

    def _make_start(self, place: FixedKey) -> list[Configuration]:
        design = self.options["start_design"]
        assert isinstance(design, str)
        return start_design(design, self.problem, self._initial, self.seed, fixed_of(place))


def ranked(records: Sequence[Record], values: FloatArray) -> npt.NDArray[np.intp]:
    """[n]: places of measured configurations, the best first: those that keep the outcome constraints, then by value.

    `values`: [n], of one objective.
    """
    broken = np.array([not one.acceptable for one in records], dtype=np.bool_)
    return np.lexsort((values, broken))


def _order(trial: TrialRecord) -> tuple[int, int]:
    return trial.revision, trial.number
