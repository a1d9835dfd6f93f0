"""Designers at work: which run where, and those that this process remembers.

A designer that needs no history is pure in its cursor, so any process may make one at any time. One that learns is
costly to feed: a process keeps it, with the revision it has seen, and feeds it only what finished since.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from django.db import transaction
from django.db.models import Q

from service.algorithms import registry
from service.algorithms.base import Cost, Designer
from service.core.lifecycle import TrialState
from service.core.space import Configuration
from service.core.trial import Trial as DesignerTrial
from service.pipeline.models import DesignerState
from service.studies.actions import OPEN_STATES
from service.studies.models import Study, Trial
from service.studies.specs import StudySpec, spec_of
from service.tenancy import access, attempt
from service.tenancy.principal import Principal

_REMEMBERED = 32

# Creation time beside the key: a database that was emptied gives its keys again.
_Key = tuple[int, datetime]


@dataclass(slots=True)
class Learner:
    """A designer that has been fed all trials that finished up to revision `seen`."""

    designer: Designer
    seen: int


_learners: OrderedDict[_Key, Learner] = OrderedDict()
_guard = threading.Lock()


def runs_in_request(study: Study) -> bool:
    """Whether the study's designer is cheap enough to be called while the study is locked."""
    return registry.describe(spec_of(study).algorithm).cost == Cost.CHEAP


def uses_history(study: Study) -> bool:
    """Whether the study's designer learns from trials, so that it is borrowed and given back."""
    return registry.describe(spec_of(study).algorithm).uses_history


def stateless_designer(study: Study) -> Designer:
    """The designer of a locked study that needs no history. The study's lock keeps two threads from sharing it."""
    return _stateless(spec_of(study))


def borrow(principal: Principal, study: Study) -> tuple[Learner, list[DesignerTrial]]:
    """The study's learning designer, fed with all finished trials, and the trials that wait for a result.

    The designer is the caller's own until `give_back`.
    """
    attempt.forbid()
    with _guard:
        learner = _learners.pop((study.pk, study.created_at), None)
    if learner is None:
        learner = Learner(_create(spec_of(study)), 0)
        stored = access.rows(DesignerState, principal).filter(study_id=study.pk).first()
        if stored is not None:
            learner.designer.load(stored.state)
    # One statement, hence one snapshot: no trial is missed between "waits" and "finished". The study's lock orders
    # commits, so that a snapshot holds a study's revisions without gaps.
    trials = access.rows(Trial, principal).filter(
        Q(state__in=OPEN_STATES) | Q(revision__gt=learner.seen), study_id=study.pk
    )
    seen = list(trials.order_by("revision", "number"))
    finished = [trial for trial in seen if trial.state not in OPEN_STATES]
    if finished:
        learner.designer.update(as_seen(finished))
        learner.seen = finished[-1].revision
    waiting = [trial for trial in seen if trial.state in OPEN_STATES]
    return learner, as_seen(sorted(waiting, key=lambda trial: trial.number))


def give_back(study: Study, learner: Learner) -> None:
    """Remember a borrowed designer, once what it was fed is committed.

    One whose call failed or whose transaction is undone is not given back: it is built anew.
    """
    transaction.on_commit(lambda: _remember((study.pk, study.created_at), learner))


def _remember(key: _Key, learner: Learner) -> None:
    with _guard:
        other = _learners.pop(key, None)
        _learners[key] = learner if other is None or other.seen <= learner.seen else other
        while len(_learners) > _REMEMBERED:
            _learners.popitem(last=False)


def as_seen(trials: Sequence[Trial]) -> list[DesignerTrial]:
    """Rows as designers see them."""
    return [
        DesignerTrial(
            number=trial.number,
            configuration=trial.params,
            state=TrialState(trial.state),
            metrics=trial.metrics or {},
            revision=trial.revision,
        )
        for trial in trials
    ]


def as_pending(configurations: Sequence[Configuration], first_number: int) -> list[DesignerTrial]:
    """Configurations that are about to become trials, as designers see them."""
    return [
        DesignerTrial(number=first_number + index, configuration=configuration, state=TrialState.REQUESTED, metrics={})
        for index, configuration in enumerate(configurations)
    ]


def _create(spec: StudySpec) -> Designer:
    return registry.create(spec.algorithm, spec.problem, seed=spec.seed, options=spec.options)


@lru_cache(maxsize=_REMEMBERED)
def _stateless(spec: StudySpec) -> Designer:
    return _create(spec)
