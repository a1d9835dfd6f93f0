"""What a study has found out: the default configuration, the one to take, and the gain of one over the other.

Which one to take is what the algorithm's posterior says, as the worker that asked it last has stored it. Where there is
none, or a result that has come since is better than what it expects, it is an estimate over replicates. Only trials
that completed since the last look are read. Those before are remembered: a completed trial never changes. Those outside
of the study's space, which may have been another, have no part in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from time import monotonic, thread_time

from service.core import estimates
from service.core.estimates import Estimate
from service.core.lifecycle import StudyState, TrialState
from service.core.problem import Goal, Objective, Problem
from service.core.remembered import Remembered
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.noise import gain_interval, replicate_deviation
from service.studies import actions
from service.studies.models import Study, Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.method import method_of, runs_in_request
from service.trials.models import DesignerState
from service.tuner.recommendation import Recommendation
from service.tuner.tuner import Tuner

# What takes the processor more seconds than this may wait so many times as long before it is done again.
_SLOW, _REST = 0.5, 10.0
# Which of a Pareto set stand for it, as shares of its length.
_ALONG = (0.0, 1.0, 0.5, 0.25, 0.75)


@dataclass(frozen=True, slots=True)
class ConfigurationSummary:
    """A configuration, the trials that measured it, and the medians of their metrics."""

    numbers: Sequence[int]
    params: Configuration
    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ObjectiveProgress:
    """How far an objective has come.

    `gain` is a fraction of the default's value: 0.25 is a quarter better, in the direction of the goal. `gain_low` to
    `gain_high` holds it with 95 %, by the rank test of the default's measurements and the best's; None for too few of
    either. `noise`: the standard deviation of one measurement, freak runs aside; None where nothing was measured twice.
    """

    metric: str
    goal: Goal
    unit: str
    default: float | None
    best: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    noise: float | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """A study's results as of a revision. `best` is one configuration, or the Pareto set.

    `recommendation`: what is expected of the best, without the noise of single runs; None with several objectives.
    `configurations`: how many different ones were measured; `space_size`: of how many, None for a continuum.
    `behind`: the study has changed since, and was not summed up again for that yet.
    """

    revision: int
    default_params: Configuration
    default: ConfigurationSummary | None
    best: Sequence[ConfigurationSummary]
    objectives: Sequence[ObjectiveProgress]
    recommendation: Recommendation | None
    configurations: int
    space_size: int | None
    behind: bool = False


@dataclass(slots=True)
class _Memory:
    """What was read of one study."""

    lock: Lock = field(default_factory=Lock)
    revision: int = 0
    # What is learned later of a completed trial, such as its node, gives it a new revision.
    numbers: set[int] = field(default_factory=set)
    # By the digest of their configuration.
    completed: dict[str, list[TrialRecord]] = field(default_factory=dict)
    estimates: dict[str, Estimate] = field(default_factory=dict)
    # The study's revision with which the latest result of each came.
    revisions: dict[str, int] = field(default_factory=dict)
    analysis: Analysis | None = None
    # How many seconds of the processor it took, and when that was, by this process's clock.
    took: float = 0.0
    ended: float = 0.0


# Creation time is part of the key because a database that was emptied gives its keys again.
_memories: Remembered[tuple[int, datetime, int], _Memory] = Remembered(200)


def analyse(principal: Principal, study: Study, *, may_lag: bool = False) -> Analysis:
    """The results of a study as of its revision, or of a later one that somebody else has asked for.

    With `may_lag`, they may be those of a little earlier where somebody else is summing up, or where that takes a while
    and the study goes on: they are `behind` then, and to be asked for again.
    """
    memory = _memory_of(study)
    earlier = memory.analysis if may_lag else None
    if not memory.lock.acquire(blocking=earlier is None):
        assert earlier is not None
        return replace(earlier, behind=True)
    try:
        if memory.analysis is None or memory.analysis.revision < study.revision:
            if may_lag and memory.analysis is not None and _may_wait(study, memory):
                return replace(memory.analysis, behind=True)
            began = thread_time()
            _read_on(principal, study, memory)
            memory.analysis = _summarise(study, memory, _stored(principal, study))
            memory.took, memory.ended = thread_time() - began, monotonic()
        return memory.analysis
    finally:
        memory.lock.release()


def _may_wait(study: Study, memory: _Memory) -> bool:
    """Whether summing up again now would keep the process from other work."""
    goes_on = study.state == StudyState.ACTIVE
    return goes_on and memory.took > _SLOW and monotonic() - memory.ended < _REST * memory.took


def best_trials(principal: Principal, study: Study, analysis: Analysis) -> list[Trial]:
    """Of the configuration to take, or of each of the Pareto set, its first trial. Empty while nothing was measured."""
    numbers = [found.numbers[0] for found in analysis.best]
    trials = access.rows(Trial, principal).filter(study_id=study.pk, number__in=numbers)
    by_number = {trial.number: trial for trial in trials}
    return [by_number[number] for number in numbers]


def leaders(principal: Principal, study: Study, *, may_lag: bool = False) -> list[Configuration]:
    """A handful of configurations: the one to take, then those with the best values; of a Pareto set its ends, then
    what lies between them. Empty while nothing was measured that kept the outcome constraints."""
    analysis = analyse(principal, study, may_lag=may_lag)
    best = [found.params for found in analysis.best]
    problem = spec_of(study).problem
    # A copy, without the lock: who may lag waits for nobody who sums up.
    acceptable = [estimate for estimate in list(_memory_of(study).estimates.values()) if estimate.acceptable]
    if not acceptable:
        return []
    if len(problem.objectives) > 1:
        return [best[place] for place in dict.fromkeys(round(share * (len(best) - 1)) for share in _ALONG) if best]
    ranked = estimates.ranked(problem, acceptable)
    found = {problem.space.key(one): one for one in [*best, *(one.configuration for one in ranked[: len(_ALONG)])]}
    return list(found.values())[: len(_ALONG)]


def _stored(principal: Principal, study: Study) -> tuple[Recommendation, int] | None:
    """What the posterior recommended when a worker last looked, and up to which revision of the study it did."""
    if runs_in_request(study) or not spec_of(study).problem.noisy:
        return None
    state = access.rows(DesignerState, principal).filter(study_id=study.pk).defer("state").first()
    found = None if state is None else state.recommendation
    if found is None:
        return None
    return Recommendation(found["configuration"], found["value"], found["low"], found["high"]), found["revision"]


def _read_on(principal: Principal, study: Study, memory: _Memory) -> None:
    completed = access.rows(Trial, principal).filter(
        study_id=study.pk,
        state=TrialState.COMPLETED,
        revision__gt=memory.revision,
        revision__lte=study.revision,
    )
    touched = set()
    spec = spec_of(study)
    rows = completed.order_by("number").values_list("number", "key", "params", "metrics", "revision")
    for number, key, params, metrics, revision in rows:
        if number in memory.numbers:
            continue
        memory.numbers.add(number)
        if spec.space_version > 1:
            params = spec.space.inside(params)
            if params is None:
                continue
            key = actions.configuration_key(study, params)
        trial = TrialRecord(number=number, configuration=params, state=TrialState.COMPLETED, metrics=metrics or {})
        memory.completed.setdefault(key, []).append(trial)
        memory.revisions[key] = max(revision, memory.revisions.get(key, 0))
        touched.add(key)
    problem = spec.problem
    for key in touched:
        for estimate in estimates.aggregate(problem, memory.completed[key]):
            memory.estimates[key] = estimate
    memory.revision = study.revision


def _summarise(study: Study, memory: _Memory, stored: tuple[Recommendation, int] | None) -> Analysis:
    problem = spec_of(study).problem
    default_params = problem.space.default()
    found = list(memory.estimates.values())
    default = next((estimate for estimate in found if estimate.configuration == default_params), None)
    before = None if default is None else _measured(default)
    recommended = None if stored is None or not _holds(study, memory, *stored) else stored[0]
    if recommended is None:
        recommended = _estimated(study, memory)
    if recommended is None:
        best = [_measured(estimate) for estimate in estimates.best_of(problem, found)]
    else:
        best = [_measured(memory.estimates[actions.configuration_key(study, recommended.configuration)])]
    return Analysis(
        revision=memory.revision,
        default_params=default_params,
        default=before,
        best=best,
        objectives=[_progress(study, objective, memory, before, best) for objective in problem.objectives],
        recommendation=recommended,
        configurations=len(memory.estimates),
        space_size=_space_size(problem),
    )


def _holds(study: Study, memory: _Memory, stored: Recommendation, revision: int) -> bool:
    """Whether nothing that has come since is better than what the posterior has recommended."""
    own = actions.configuration_key(study, stored.configuration)
    # A worker may have looked at more than was read here.
    if own not in memory.estimates:
        return False
    problem = spec_of(study).problem
    metric, sign = problem.metrics[0], float(problem.signs()[0])
    since = [found for key, found in memory.estimates.items() if key != own and memory.revisions[key] > revision]
    return not any(found.acceptable and sign * found.median[metric] < sign * stored.value for found in since)


def _estimated(study: Study, memory: _Memory) -> Recommendation | None:
    """The same without a posterior."""
    tuner = Tuner(spec_of(study).problem, method_of(spec_of(study)))
    tuner.update([trial for trials in memory.completed.values() for trial in trials])
    return tuner.recommend(costly=False)


def _progress(
    study: Study,
    objective: Objective,
    memory: _Memory,
    default: ConfigurationSummary | None,
    best: Sequence[ConfigurationSummary],
) -> ObjectiveProgress:
    metric = objective.metric
    sign = 1 if objective.goal == "minimize" else -1
    leader = min(best, key=lambda measured: sign * measured.metrics[metric], default=None)
    reached = None if leader is None else leader.metrics[metric]
    start = None if default is None else default.metrics[metric]
    gain = None
    if start is not None and reached is not None and start != 0:
        gain = sign * (start - reached) / abs(start)
    interval = None
    if gain is not None and leader is not None and default is not None and leader.numbers != default.numbers:
        before, after = (
            [sign * value for value in _values(study, memory, measured, metric)] for measured in (default, leader)
        )
        interval = gain_interval(before, after)
    return ObjectiveProgress(
        metric,
        objective.goal,
        objective.unit,
        start,
        reached,
        gain,
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        replicate_deviation(_replicates(memory, metric)),
    )


def _values(study: Study, memory: _Memory, measured: ConfigurationSummary, metric: str) -> list[float]:
    trials = memory.completed[actions.configuration_key(study, measured.params)]
    return [trial.metrics[metric] for trial in trials if math.isfinite(trial.metrics.get(metric, math.nan))]


def _replicates(memory: _Memory, metric: str) -> list[list[float]]:
    """The values of each configuration that was measured more than once."""
    groups = ([trial.metrics.get(metric, math.nan) for trial in group] for group in memory.completed.values())
    return [group for group in groups if len(group) > 1 and all(map(math.isfinite, group))]


def _space_size(problem: Problem) -> int | None:
    """How many configurations the parameters have, conditions and constraints aside; None for a continuum."""
    product = 1
    for parameter in problem.space.parameters:
        size = parameter.size()
        if size is None:
            return None
        product *= size
    return product


def _measured(estimate: Estimate) -> ConfigurationSummary:
    return ConfigurationSummary(sorted(estimate.numbers), estimate.configuration, estimate.median)


def _memory_of(study: Study) -> _Memory:
    return _memories.get_or_put((study.pk, study.created_at, study.space_version), _Memory)
