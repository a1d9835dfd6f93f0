"""`tpe`: the tree-structured Parzen estimator [bergstra-2011] of the library Optuna.

The search begins with a start design. After that, each suggestion is a draw of Optuna's TPESampler from an internal
study, to which the finished trials are added in the order in which they finished. The sampler's seed is new for each
suggestion, so no other state is needed. Pending trials count as bad ones (Optuna's "constant liar"), which spreads
parallel suggestions.

For the sampler, numbers on an even grid are integers, other numbers are a continuum of the encoded cube, and choices
and booleans are choices. Parameters with a condition are drawn only if they are active. A draw counts as bad and is
repeated if it breaks a constraint, lacks the fixed values or is taken; after some attempts, the nearest configuration
of a sample takes its place.

The state of a trial determines what the sampler learns from it. COMPLETED: its metrics, and whether they meet the
outcome constraints; replicates are separate trials. PRUNED: with one objective its bound, ranked after all completed
trials. INFEASIBLE: a broken constraint. FAILED: nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from service.algorithms.base import NOTHING_FIXED, Algorithm, Batch, Cost
from service.algorithms.designs.part import FixedKey, Part, fixed_key, fixed_of, seeded
from service.algorithms.start import start_design
from service.core.encoding import Encoding, FloatArray
from service.core.errors import JsonValue
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.space import Configuration, FloatParameter, IntParameter, Scalar
from service.core.trial import TrialRecord

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution
    from optuna.samplers import TPESampler
    from optuna.trial import FrozenTrial
    from optuna.trial import Trial as Asked

_REMEMBERED = 8
# A finer grid is searched as a continuum.
_MOST_LEVELS = 2**20
_REDRAWS = 10
_MOST_FAILURES = 2
# Discarded draws stay in Optuna's study as failed trials until there are this many more of them than of other trials.
_MOST_DISCARDED = 200


class Tpe(Algorithm):
    """See the module. Options: `initial`, `start_design`, `candidates`."""

    cost = Cost.COSTLY
    uses_history = True

    def __init__(self, problem: Problem, *, seed: int, options: Mapping[str, JsonValue]) -> None:
        super().__init__(problem, seed=seed, options=options)
        initial, design, candidates = options["initial"], options["start_design"], options["candidates"]
        assert isinstance(initial, int)
        assert isinstance(design, str)
        assert isinstance(candidates, int)
        self._initial, self._design, self._candidates = initial, design, candidates
        self._encoding = Encoding(problem.space)
        self._distributions = _distributions(self._encoding)
        self._conditional = any(one.condition is not None for one in problem.space.parameters)
        self._part_of = lru_cache(_REMEMBERED)(self._make_part)
        self._start_of = lru_cache(_REMEMBERED)(self._make_start)
        self._trials: list[TrialRecord] = []
        self._keys: set[str] = set()
        self._bad: set[str] = set()
        self._failures: dict[str, int] = {}
        self._begun = 0
        # The study is created at its first use. It has the trials `_added` to it and `_discarded` draws.
        self._study: Study | None = None
        self._added = 0
        self._discarded = 0

    def update(self, finished: Sequence[TrialRecord]) -> None:
        if not finished:
            return
        before = self._trials
        self._trials = sorted([*before, *finished], key=lambda trial: (trial.revision, trial.number))
        if self._trials[: len(before)] != before:
            self._study = None
        for trial in finished:
            key = self.problem.space.key(trial.configuration)
            if trial.state == TrialState.FAILED:
                self._failures[key] = self._failures.get(key, 0) + 1
                if self._failures[key] >= _MOST_FAILURES:
                    self._bad.add(key)
                continue
            self._begun += 1
            self._keys.add(key)
            if trial.state == TrialState.INFEASIBLE:
                self._bad.add(key)

    def suggest(
        self,
        count: int,
        *,
        cursor: int,
        pending: Sequence[TrialRecord] = (),
        fixed: Mapping[str, Scalar] = NOTHING_FIXED,
    ) -> Batch:
        key, place = self.problem.space.key, fixed_key(fixed)
        part = self._part_of(place)
        running = [trial.configuration for trial in pending]
        taken = {key(one) for one in running} | self._bad | (set() if self.problem.noisy else self._keys)
        found: list[Configuration] = []
        while len(found) < count:
            configuration: Configuration | None = None
            if self._begun + len(running) < self._initial:
                seen = taken | self._keys
                configuration = next((one for one in self._start_of(place) if key(one) not in seen), None)
            configuration = configuration or self._drawn(part, running, taken)
            if configuration is None and self.problem.noisy:
                configuration = self._drawn(part, running, self._bad)
            if configuration is None:
                return Batch(tuple(found), cursor, True)
            found.append(dict(configuration))
            running.append(configuration)
            taken.add(key(configuration))
        return Batch(tuple(found), cursor, False)

    def _make_part(self, place: FixedKey) -> Part:
        return Part(self.problem, fixed_of(place))

    def _make_start(self, place: FixedKey) -> list[Configuration]:
        return start_design(self._design, self.problem, self._initial, self.seed, fixed_of(place))

    def _drawn(self, part: Part, running: Sequence[Configuration], taken: set[str]) -> Configuration | None:
        """Return a free draw, or else the free configuration nearest to one; None if all are taken."""
        from optuna.trial import TrialState as State

        random = seeded(self.seed, len(self._trials), len(running))
        if part.listed is not None and all(one in taken for one in part.feasible.keys):
            return None
        study = self._current()
        study.sampler = self._sampler(int(random.integers(2**32)))
        asked: list[int] = []
        try:
            for configuration in running:
                study.add_trial(self._frozen(configuration, State.RUNNING))
                asked.append(len(study.get_trials(deepcopy=False)) - 1)
            for _ in range(_REDRAWS):
                trial = study.ask()
                asked.append(trial.number)
                (configuration,) = part.decode(self._row(trial))
                if self.problem.space.feasible(configuration) and self.problem.space.key(configuration) not in taken:
                    return configuration
        finally:
            for number in asked:
                study.tell(number, state=State.FAIL)
            self._discarded += len(asked)
        return part.nearest(self._encoding.encode([configuration])[0], taken, random)

    # Optuna's study

    def _current(self) -> Study:
        """Return the study with all finished trials."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        if self._study is None or self._discarded > self._added + _MOST_DISCARDED:
            directions = [optuna.study.StudyDirection.MINIMIZE] * len(self.problem.objectives)
            self._study = optuna.create_study(directions=directions, sampler=self._sampler(0))
            self._added = self._discarded = 0
        for trial in self._trials[self._added :]:
            frozen = self._finished(trial)
            if frozen is not None:
                self._study.add_trial(frozen)
        self._added = len(self._trials)
        return self._study

    def _sampler(self, seed: int) -> TPESampler:
        from optuna.samplers import TPESampler

        with warnings.catch_warnings():
            # Optuna warns that `group` and other options are experimental.
            warnings.simplefilter("ignore")
            return TPESampler(
                seed=seed,
                n_startup_trials=0,
                n_ei_candidates=self._candidates,
                multivariate=True,
                group=self._conditional,
                constant_liar=True,
            )

    def _finished(self, trial: TrialRecord) -> FrozenTrial | None:
        """Return a finished trial in Optuna's form; None if it shows nothing."""
        from optuna.trial import TrialState as State

        values = [
            float(sign) * trial.metrics.get(metric, math.nan)
            for sign, metric in zip(self.problem.signs(), self.problem.metrics, strict=True)
        ]
        measured = all(math.isfinite(value) for value in values)
        if trial.state == TrialState.COMPLETED and measured:
            return self._frozen(trial.configuration, State.COMPLETE, values, self.problem.acceptable(trial.metrics))
        if trial.state == TrialState.PRUNED and len(values) == 1:
            return self._frozen(trial.configuration, State.PRUNED, values if measured else ())
        if trial.state == TrialState.INFEASIBLE:
            return self._frozen(trial.configuration, State.COMPLETE, [0.0] * len(values), acceptable=False)
        return None

    def _frozen(
        self, configuration: Configuration, state: object, values: Sequence[float] = (), acceptable: bool = True
    ) -> FrozenTrial:
        from optuna.trial import TrialState as State
        from optuna.trial import create_trial

        assert isinstance(state, State)
        row = self._encoding.encode([configuration])[0]
        places = {name: place for place, name in enumerate(self.problem.space.names()) if name in configuration}
        return create_trial(
            state=state,
            params={name: _value(self._distributions[name], float(row[place])) for name, place in places.items()},
            distributions={name: self._distributions[name] for name in places},
            values=values if state == State.COMPLETE else None,
            intermediate_values={0: values[0]} if state == State.PRUNED and values else None,
            constraints={"acceptable": 0.0 if acceptable else 1.0} if state == State.COMPLETE else None,
        )

    def _row(self, asked: Asked) -> FloatArray:
        """Return the encoded parameters, [parameters], of a draw; each is drawn once it is known to be active."""
        space, names = self.problem.space, self.problem.space.names()
        row = np.zeros(len(names))
        values: Configuration = {}
        while waiting := [name for name in space.active(values) if name not in values]:
            for name in waiting:
                row[names.index(name)] = _suggested(asked, name, self._distributions[name])
            drawn = self._encoding.decode(row)[0]
            values.update((name, drawn[name]) for name in waiting)
        return row


def _distributions(encoding: Encoding) -> dict[str, BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    found: dict[str, BaseDistribution] = {}
    for column, parameter in zip(encoding.columns, encoding.space.parameters, strict=False):
        size = column.size
        uneven = isinstance(parameter, FloatParameter | IntParameter) and parameter.log and parameter.factor is None
        if column.kind in ("categorical", "boolean") and size is not None:
            found[column.name] = CategoricalDistribution(range(size))
        elif size == 1 or (size is not None and size <= _MOST_LEVELS and not uneven):
            found[column.name] = IntDistribution(0, size - 1)
        else:
            found[column.name] = FloatDistribution(0.0, 1.0)
    return found


def _value(distribution: BaseDistribution, code: float) -> float | int:
    """Return Optuna's form of an encoded value: a rank, or the code itself."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return round(code * (len(distribution.choices) - 1))
    return round(code * distribution.high) if isinstance(distribution, IntDistribution) else code


def _suggested(asked: Asked, name: str, distribution: BaseDistribution) -> float:
    """Return the code of a value that Optuna draws."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        rank = asked.suggest_categorical(name, distribution.choices)
        assert isinstance(rank, int)
        return float(rank) / max(len(distribution.choices) - 1, 1)
    if isinstance(distribution, IntDistribution):
        return float(asked.suggest_int(name, 0, distribution.high)) / max(distribution.high, 1)
    return float(asked.suggest_float(name, 0.0, 1.0))
