"""The part that `gp` and `botorch` share: the start design, the configurations that are ruled out, random suggestions.

A study begins with points of a Sobol sequence. An infeasible configuration is never suggested again. A configuration
whose trial FAILED may be suggested once more, but not a third time. Without noise, no configuration is measured twice.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from botorch.acquisition.acquisition import AcquisitionFunction

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.designs.sequences import Sobol
from service.algorithms.gp.optimise import DISCRETE, Search, best_of, maximised
from service.algorithms.gp.region import Region
from service.core.encoding import Encoding, FloatArray
from service.core.errors import JsonValue
from service.core.feasibility import feasible_set
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, Scalar
from service.core.trial import TrialRecord
from service.logger import Logger

logger = Logger(__name__)

_REMEMBERED_REGIONS = 8
_MOST_FAILURES = 2
# The runs of a configuration after which others go first.
_MOST_REPEATS = 3
_TRIES = 200

_Fixed: TypeAlias = tuple[tuple[str, str, Scalar], ...]


class ModelBased(Algorithm):
    """An algorithm with a model. Option: `initial`. A subclass says in `_best` how the model is used."""

    cost = Cost.COSTLY
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        initial = options["initial"]
        assert initial is None or isinstance(initial, int)
        parameters = len(problem.space.parameters)
        # The default is measured in each context.
        usual = min(2 * (parameters + 1), 6) + len(problem.context.every() if problem.context else ())
        self._initial = usual if initial is None else initial
        self._encoding = Encoding(problem.space, feasible_set(problem.space).geometric)
        self._start = Sobol(problem, seed=seed, options={})
        self._region_of = lru_cache(_REMEMBERED_REGIONS)(self._make_region)
        self._trials: list[TrialRecord] = []
        self._rows = np.zeros((0, self._encoding.dimension))
        self._keys: list[str] = []

    def update(self, finished: Sequence[TrialRecord]) -> None:
        if not finished:
            return
        rows = self._encoding.encode([trial.configuration for trial in finished])
        self._trials.extend(finished)
        self._rows = np.vstack([self._rows, rows])
        self._keys.extend(self.problem.space.key(trial.configuration) for trial in finished)
        # Keep the order in which the trials finished, whatever the order of the calls.
        order = sorted(range(len(self._trials)), key=lambda i: (self._trials[i].revision, self._trials[i].number))
        if order != list(range(len(order))):
            self._trials = [self._trials[i] for i in order]
            self._keys = [self._keys[i] for i in order]
            self._rows = self._rows[order]

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        region = self._region_of(tuple(sorted((name, type(one).__name__, one) for name, one in fixed.items())))
        running = [trial.configuration for trial in pending]
        taken = self._not_again() | {self.problem.space.key(one) for one in running}
        found: list[Configuration] = []
        # A configuration that somebody has chosen is not part of the start design: a poor choice costs one trial, and
        # does not also leave out a point that shows where the others are.
        initial = self._initial + sum(
            trial.origin == "enqueued" and trial.state != TrialState.FAILED for trial in [*self._trials, *pending]
        )
        while len(found) < count:
            configuration: Configuration | None = None
            if self._begun(len(running)) < initial:
                configuration, cursor = self._next_of_start(cursor, taken | set(self._keys), fixed)
            if configuration is None:
                configuration = self._best(region, running, taken)
            if configuration is None:
                return Batch(tuple(found), cursor, True)
            found.append(configuration)
            running.append(configuration)
            taken.add(self.problem.space.key(configuration))
        return Batch(tuple(found), cursor, False)

    def _maximum(
        self,
        acquisition: AcquisitionFunction,
        region: Region,
        incumbents: FloatArray,
        taken: set[str],
        search: Search,
        random: np.random.Generator,
    ) -> Configuration | None:
        """Return the free configuration with the largest acquisition; None if none was found.

        `incumbents`: rows near which it may be large, the best first. Configurations that were measured often count as
        free only if nothing else is.
        """
        often = self._often(region)
        for ruled_out in (taken | often, taken) if often else (taken,):
            found = self._free_maximum(acquisition, region, incumbents, ruled_out, search, random)
            if found is not None:
                return found
        return None

    def _free_maximum(
        self,
        acquisition: AcquisitionFunction,
        region: Region,
        incumbents: FloatArray,
        taken: set[str],
        search: Search,
        random: np.random.Generator,
    ) -> Configuration | None:
        key, whole = self.problem.space.key, region.whole()
        listed = whole is not None and len(whole[0]) <= search.most_listed
        optimizer = DISCRETE if listed else search.optimizer_for(region)
        models = getattr(acquisition.model, "models", [acquisition.model])
        logger.debug(
            "maximising",
            optimizer=optimizer,
            acquisition=type(acquisition).__name__,
            model=type(models[0]).__name__,
        )
        if whole is not None and listed:
            rows = whole[1][[one not in taken for one in region.keys]]
            return region.settle(best_of(acquisition, rows, search)[0]) if len(rows) else None
        pool = region.pool(incumbents, search.raw_samples, random)
        if optimizer == DISCRETE and not region.connected:
            free = pool[[key(region.settle(row)) not in taken for row in pool]]
            rows = best_of(acquisition, free, search) if len(free) else free
        else:
            rows = maximised(acquisition, region, pool, search, random) if len(pool) else pool
        for row in rows:
            configuration = region.settle(row)
            if key(configuration) not in taken and self.problem.space.feasible(configuration):
                return configuration
        return None

    @abstractmethod
    def _best(self, region: Region, running: Sequence[Configuration], taken: set[str]) -> Configuration | None:
        """Return the best configuration whose key is not taken, next to the running ones; None if all are taken."""

    def _make_region(self, fixed: _Fixed) -> Region:
        return Region(self._encoding, {name: value for name, _, value in fixed})

    def _begun(self, running: int) -> int:
        return running + sum(trial.state != TrialState.FAILED for trial in self._trials)

    def _not_again(self) -> set[str]:
        """Return the keys of the configurations that finished trials rule out."""
        failures: Counter[str] = Counter()
        taken: set[str] = set()
        for trial, key in zip(self._trials, self._keys, strict=True):
            if trial.state == TrialState.FAILED:
                failures[key] += 1
            elif trial.state == TrialState.INFEASIBLE or not self.problem.noisy:
                taken.add(key)
        return taken | {key for key, failed in failures.items() if failed >= _MOST_FAILURES}

    def _often(self, region: Region) -> set[str]:
        """Return the keys of the configurations that wait until others have been measured.

        Repeats are the business of the resampling policy. If disturbed runs make all others look worse, the model
        would measure the best known configuration again and again, and never find out.
        """
        if not self.problem.noisy or self._all_measured(region):
            return set()
        done = zip(self._trials, self._keys, strict=True)
        counts = Counter(key for trial, key in done if trial.state == TrialState.COMPLETED)
        return {key for key, count in counts.items() if count >= _MOST_REPEATS}

    def _all_measured(self, region: Region) -> bool:
        """Return whether every configuration of the region has a trial, so that only replicates are left."""
        whole = region.whole()
        if whole is None or len(whole[0]) > len(self._trials):
            return False
        return {self.problem.space.key(one) for one in whole[0]} <= set(self._keys)

    def _next_of_start(
        self, cursor: int, taken: set[str], fixed: Mapping[str, Scalar]
    ) -> tuple[Configuration | None, int]:
        """Return the next new configuration of the space-filling sequence, and the cursor after it."""
        for _ in range(_TRIES):
            batch = self._start.suggest(1, cursor=cursor, fixed=fixed)
            cursor = batch.cursor
            if batch.exhausted:
                break
            if self.problem.space.key(batch.configurations[0]) not in taken:
                return batch.configurations[0], cursor
        return None, cursor

    def _random(self, running: int) -> np.random.Generator:
        """Return a generator that differs for every suggestion and is the same if a suggestion is repeated."""
        return np.random.default_rng([self.seed % 2**64, len(self._trials), running])

    def _any(self, region: Region, taken: set[str], random: np.random.Generator) -> Configuration | None:
        """Return any free configuration; in a noisy study without one, a configuration that is running already."""
        found = region.feasible_set.unseen(taken, random)
        if found is None and self.problem.noisy:
            found = region.feasible_set.unseen(self._not_again(), random)
        return found
