"""Tuners at work: those that this process remembers, and what they are fed.

A tuner that needs no history is pure in its cursor, so any process may make one at any time. One that learns is costly
to feed: a process keeps it, with the revision it has seen, and feeds it only what finished since.

When the ranges of a study's space change, its tuners are made anew for the new version. Trials outside of it cannot be
encoded, so no tuner sees them; those inside are learned from as ever. Only the hours that they took all count.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.policies.pruning import Running, Step
from service.studies.actions import OPEN_STATES
from service.studies.models import Measurement, Study, Trial
from service.studies.specs import StudySpec, budget_of, spec_of
from service.tenancy import access, attempt
from service.tenancy.principal import Principal
from service.trials.method import method_of
from service.trials.models import DesignerState
from service.tuner.tuner import Tuner

_REMEMBERED = 32

# Creation time beside the key: a database that was emptied gives its keys again.
_Key = tuple[int, datetime, int]
# Where a study's object keeps, until its transaction ends, the tuner that was given back.
_BORROWED = "_tuner"


@dataclass(slots=True)
class Learner:
    """A tuner that has been fed all trials of its space that finished up to revision `seen`.

    `counted`: their numbers, since what is learned later of one that finished, such as its node, gives it a new
    revision. `began`: when the first trial was created. `hours`: what those that finished took, outside of the space
    too.
    """

    tuner: Tuner
    seen: int
    counted: set[int] = field(default_factory=set)
    began: datetime | None = None
    hours: float = 0.0

    def stop(self, study: Study) -> str | None:
        """Why the search is to end; None: it goes on."""
        most = budget_of(study).max_node_hours
        if most is not None and self.hours >= most:
            return f"{most:g} node-hours are used."
        seconds = 0.0 if self.began is None else (study.database_time - self.began).total_seconds()
        return self.tuner.stop(seconds, self.hours)


_learners: OrderedDict[_Key, Learner] = OrderedDict()
_guard = threading.Lock()


def borrow(principal: Principal, study: Study) -> tuple[Learner, list[TrialRecord]]:
    """The study's tuner, fed with all finished trials of its space, and those of its trials that wait for a result.

    It is the caller's own until `give_back`. Within one transaction the same comes again, fed with what finished since.
    """
    attempt.forbid()
    spec = spec_of(study)
    learner = study.__dict__.pop(_BORROWED, None)
    if learner is None:
        with _guard:
            learner = _learners.pop(_key(study, spec), None)
    if learner is None:
        learner = Learner(Tuner(spec.problem, method_of(spec)), 0)
        stored = access.rows(DesignerState, principal).filter(study_id=study.pk).first()
        if stored is not None:
            learner.tuner.load(stored.state)
    learner.tuner.limit(budget_of(study).max_trials)
    # One statement, hence one snapshot: no trial is missed between "waits" and "finished". The study's lock orders
    # commits, so that a snapshot holds a study's revisions without gaps.
    trials = access.rows(Trial, principal).filter(
        Q(state__in=OPEN_STATES) | Q(revision__gt=learner.seen), study_id=study.pk
    )
    seen = list(trials.order_by("revision", "number"))
    finished = [trial for trial in seen if trial.state not in OPEN_STATES and trial.number not in learner.counted]
    if finished:
        steps = _steps(principal, study, finished) if learner.tuner.uses_measurements else {}
        told = as_seen(finished)
        learner.tuner.update(within(spec, told), steps)
        learner.hours += sum(trial.seconds or 0.0 for trial in told) / 3600
        learner.seen = finished[-1].revision
        learner.counted.update(trial.number for trial in finished)
    for trial in seen:
        if trial.origin != "added" and (learner.began is None or trial.created_at < learner.began):
            learner.began = trial.created_at
    waiting = [trial for trial in seen if trial.state in OPEN_STATES]
    return learner, within(spec, as_seen(sorted(waiting, key=lambda trial: trial.number)))


def hours_used(principal: Principal, study: Study) -> float:
    """The running time of all finished trials of a study together."""
    learner, _ = borrow(principal, study)
    give_back(study, learner)
    return learner.hours


def give_back(study: Study, learner: Learner) -> None:
    """Remember a borrowed tuner, once what it was fed is committed.

    One whose call failed or whose transaction is undone is not given back: it is built anew.
    """
    study.__dict__[_BORROWED] = learner
    transaction.on_commit(lambda: _remember(study, learner))


def as_seen(trials: Sequence[Trial]) -> list[TrialRecord]:
    """Rows as tuners see them."""
    return [
        TrialRecord(
            number=trial.number,
            configuration=trial.params,
            state=TrialState(trial.state),
            metrics=trial.metrics or {},
            revision=trial.revision,
            seconds=_seconds(trial),
            origin=trial.origin,
        )
        for trial in trials
    ]


def within(spec: StudySpec, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The trials whose configurations lie in the study's space, which may have been another when they were made."""
    if spec.space_version == 1:
        return list(trials)
    inside = [(trial, spec.space.inside(trial.configuration)) for trial in trials]
    return [replace(trial, configuration=configuration) for trial, configuration in inside if configuration is not None]


def as_running(principal: Principal, study: Study, trial: Trial, seconds: float) -> Running:
    """A trial that runs, with its measurements, as pruning policies see it."""
    steps = _steps(principal, study, [trial])
    return Running(trial.number, trial.params, seconds, steps.get(trial.number, ()))


def as_pending(configurations: Sequence[Configuration], first_number: int) -> list[TrialRecord]:
    """Configurations that are about to become trials, as tuners see them."""
    return [
        TrialRecord(number=first_number + index, configuration=configuration, state=TrialState.REQUESTED, metrics={})
        for index, configuration in enumerate(configurations)
    ]


def _remember(study: Study, learner: Learner) -> None:
    study.__dict__.pop(_BORROWED, None)
    key = _key(study, spec_of(study))
    with _guard:
        other = _learners.pop(key, None)
        _learners[key] = learner if other is None or other.seen <= learner.seen else other
        while len(_learners) > _REMEMBERED:
            _learners.popitem(last=False)


def _key(study: Study, spec: StudySpec) -> _Key:
    return study.pk, study.created_at, spec.space_version


def _steps(principal: Principal, study: Study, trials: Sequence[Trial]) -> Mapping[int, Sequence[Step]]:
    """The measurements of the first objective, in the order of their steps, by trial number."""
    metric = spec_of(study).problem.metrics[0]
    numbers = {trial.pk: trial.number for trial in trials}
    steps: dict[int, list[Step]] = {}
    rows = access.rows(Measurement, principal).filter(trial_id__in=numbers).order_by("step")
    for trial_id, step, metrics, elapsed in rows.values_list("trial_id", "step", "metrics", "elapsed_seconds"):
        if metric in metrics:
            steps.setdefault(numbers[trial_id], []).append(Step(step, metrics[metric], elapsed))
    return steps


def _seconds(trial: Trial) -> float | None:
    """The running time that an agent measured, else that between start and end."""
    if trial.seconds is not None or trial.started_at is None or trial.finished_at is None:
        return trial.seconds
    return (trial.finished_at - trial.started_at).total_seconds()
