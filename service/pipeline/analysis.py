"""What a study has found out: the default configuration, the best one, and the gain of one over the other.

Only trials that completed since the last look are read. Those before are remembered: a completed trial never changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock

from service.core import estimates
from service.core.estimates import Estimate
from service.core.lifecycle import TrialState
from service.core.problem import Goal, Objective, Problem
from service.core.space import Configuration
from service.core.trial import Trial as MeasuredTrial
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal

_REMEMBERED = 200


@dataclass(frozen=True, slots=True)
class Measured:
    """A configuration, the trials that measured it, and the medians of their metrics."""

    numbers: Sequence[int]
    params: Configuration
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ObjectiveProgress:
    """How far an objective has come.

    `gain` is a fraction of the default's value: 0.25 is a quarter better, in the direction of the goal.
    """

    metric: str
    goal: Goal
    unit: str
    default: float | None
    best: float | None
    gain: float | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A study's results as of a revision. `best` is one configuration, or the Pareto set."""

    revision: int
    default_params: Configuration
    default: Measured | None
    best: Sequence[Measured]
    objectives: Sequence[ObjectiveProgress]


@dataclass(slots=True)
class _Memory:
    """What was read of one study."""

    lock: Lock = field(default_factory=Lock)
    revision: int = 0
    # By the digest of their configuration.
    completed: dict[str, list[MeasuredTrial]] = field(default_factory=dict)
    estimates: dict[str, Estimate] = field(default_factory=dict)
    analysis: Analysis | None = None


# Creation time beside the key: a database that was emptied gives its keys again.
_memories: OrderedDict[tuple[int, datetime], _Memory] = OrderedDict()
_guard = Lock()


def analyse(principal: Principal, study: Study) -> Analysis:
    """The results of a study as of its revision, or of a later one that somebody else has asked for."""
    memory = _memory_of(study)
    with memory.lock:
        if memory.analysis is None or memory.revision < study.revision:
            _read_on(principal, study, memory)
            memory.analysis = _summarise(spec_of(study).problem, memory)
        return memory.analysis


def _read_on(principal: Principal, study: Study, memory: _Memory) -> None:
    completed = access.rows(Trial, principal).filter(
        study_id=study.pk,
        state=TrialState.COMPLETED,
        revision__gt=memory.revision,
        revision__lte=study.revision,
    )
    touched = set()
    for number, key, params, metrics in completed.order_by("number").values_list("number", "key", "params", "metrics"):
        trial = MeasuredTrial(number=number, configuration=params, state=TrialState.COMPLETED, metrics=metrics or {})
        memory.completed.setdefault(key, []).append(trial)
        touched.add(key)
    problem = spec_of(study).problem
    for key in touched:
        for estimate in estimates.aggregate(problem, memory.completed[key]):
            memory.estimates[key] = estimate
    memory.revision = study.revision


def _summarise(problem: Problem, memory: _Memory) -> Analysis:
    default_params = problem.space.default()
    found = list(memory.estimates.values())
    default = next((estimate for estimate in found if estimate.configuration == default_params), None)
    best = [_measured(estimate) for estimate in estimates.best_of(problem, found)]
    before = None if default is None else _measured(default)
    return Analysis(
        revision=memory.revision,
        default_params=default_params,
        default=before,
        best=best,
        objectives=[_progress(objective, before, best) for objective in problem.objectives],
    )


def _progress(objective: Objective, default: Measured | None, best: Sequence[Measured]) -> ObjectiveProgress:
    values = [measured.metrics[objective.metric] for measured in best]
    sign = 1 if objective.goal == "minimize" else -1
    reached = min(values, key=lambda value: sign * value, default=None)
    start = None if default is None else default.metrics[objective.metric]
    gain = None
    if start is not None and reached is not None and start != 0:
        gain = sign * (start - reached) / abs(start)
    return ObjectiveProgress(objective.metric, objective.goal, objective.unit, start, reached, gain)


def _measured(estimate: Estimate) -> Measured:
    return Measured(sorted(estimate.numbers), estimate.configuration, estimate.median)


def _memory_of(study: Study) -> _Memory:
    key = (study.pk, study.created_at)
    with _guard:
        memory = _memories.setdefault(key, _Memory())
        _memories.move_to_end(key)
        while len(_memories) > _REMEMBERED:
            _memories.popitem(last=False)
        return memory
