"""The tuners that this process remembers, and what they have learned.

A tuner that needs no history depends on its cursor alone, so any process may make one at any time. One that learns is
costly to feed: a process keeps it, with the revision that it has seen, and feeds it only the trials that finished
since.

When a study's space changes, its tuners are made again for the new version. `StudySpec.present` says how a trial
counts in it. Trials outside of the space cannot be encoded, so no tuner sees them; it learns from those inside as
usual. Only the hours of all trials count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from service.core.interference import Interference
from service.core.lifecycle import TrialState
from service.core.live_results import LiveOutcome
from service.core.metrics import limited
from service.core.reasons import Reason, joined, restored, stored
from service.core.space import Configuration
from service.core.trial import TrialRecord
from service.platform.lru_cache import LruCache
from service.policies.pruning import Running, Step
from service.policies.stopping import node_hours_used
from service.studies.actions import OPEN_STATES
from service.studies.change import Snapshot
from service.studies.models import Measurement, Study, Trial
from service.studies.specs import StudySpec, budget_of, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.method import method_of
from service.trials.models import DesignerState
from service.tuner.contextual import tuner_for
from service.tuner.suggestion import Closing
from service.tuner.tuner import Tuner

_REPEATS_FOLLOW = Reason("Before the search ends, the best are measured again.", "repeats_follow")
# Creation time is part of the key because a database that was emptied gives its keys again.
_Key = tuple[int, datetime, int]


@dataclass(slots=True)
class Learner:
    """A tuner that has been fed all trials of its space that finished up to revision `seen`.

    `counted`: their numbers, because a finished trial gets a new revision when something is learned of it later, such
    as its node. `began`: when the first trial was created. `hours`: the running time of all finished trials, including
    trials outside of the space. `searched`: the number of finished trials of the search.
    """

    tuner: Tuner
    seen: int
    counted: set[int] = field(default_factory=set)
    began: datetime | None = None
    hours: float = 0.0
    searched: int = 0

    def expected(self, found: Snapshot) -> int | None:
        """Return how many trials the search will have had in the end, at its pace so far; None without a budget.

        Policies plan the last trials by it, such as repeats of the best configuration.
        """
        budget, seconds = budget_of(found.study), self._seconds(found)
        limits = [] if budget.max_trials is None else [float(budget.max_trials)]
        for most, used in ((budget.max_node_hours, self.hours), (budget.max_seconds, seconds)):
            if most is not None and self.searched and used > 0.0:
                limits.append(self.searched * most / used)
        return int(min(limits)) if limits else None

    def stop(self, found: Snapshot, pending: Sequence[TrialRecord], *, costly: bool) -> str | None:
        """Return why the search is to end now; None if it goes on. `pending` and `costly`: see `Tuner.stop`."""
        most = budget_of(found.study).max_node_hours
        if most is not None and self.hours >= most:
            return node_hours_used(most)
        if found.study.searching_since is not None:
            # Its rules have ended the search once, and a user has given it more budget since.
            return None
        return self.tuner.stop(self._seconds(found), self.hours, pending, costly=costly)

    def _seconds(self, found: Snapshot) -> float:
        """Return the time since the first trial was created."""
        return 0.0 if self.began is None else (found.time - self.began).total_seconds()


_learners: LruCache[_Key, Learner] = LruCache(32)


@contextmanager
def borrowed(found: Snapshot) -> Iterator[tuple[Learner, list[TrialRecord]]]:
    """Lend the study's tuner, fed with all finished trials of its space, and give its trials that wait for a result.

    The tuner belongs to the block alone. It is remembered again once the transaction, if there is one, is committed;
    until then the same change gets the same tuner. One whose block raises, or whose transaction is undone, is forgotten
    and made again.
    """
    spec = found.spec
    learner, found.tuner = found.tuner, None
    if learner is None:
        learner = _learners.pop(_key(found.study)) or _make(found, spec)
    assert isinstance(learner, Learner)
    waiting = _feed(found, spec, learner)
    learner.tuner.limit(learner.expected(found))
    learner.tuner.close(closing_of(found.study))
    yield learner, waiting
    lent = found.tuner = learner
    transaction.on_commit(lambda: _remember(found, lent))


def closing_of(study: Study) -> Closing | None:
    """Return the last part of a study's search, if a stopping rule has had a reason to end it."""
    if study.closing is None:
        return None
    return Closing(restored(study.closing["reason"], study.closing["reason_data"]), study.closing["after"])


def keep_closing(study: Study, closing: Closing | None) -> None:
    """Note on a study that a stopping rule has had a reason to end its search, and say it."""
    if closing is not None and study.closing is None:
        reason = closing.reason
        study.explain(joined([reason, _REPEATS_FOLLOW]))
        study.closing = {"reason": str(reason), "reason_data": stored(reason), "after": closing.after}


def hours_used(found: Snapshot) -> float:
    """Return the running time of all finished trials of a study together."""
    with borrowed(found) as (learner, _):
        return learner.hours


def as_seen(trials: Sequence[Trial]) -> list[TrialRecord]:
    """Return rows as tuners see them."""
    return [
        TrialRecord(
            number=trial.number,
            configuration=trial.params,
            state=TrialState(trial.state),
            metrics=limited(trial.metrics or {}),
            revision=trial.revision,
            seconds=_seconds(trial),
            origin=trial.origin,
            doubtful=bool(trial.doubt),
            interference=None if trial.interference is None else Interference.from_json(trial.interference),
            round=trial.round,
            # A client of an ask/tell study measures on a machine of its own.
            agent=trial.agent or trial.client_id,
            node=trial.node,
            reason=trial.reason.partition("\n")[0],
            live=None if trial.live is None else LiveOutcome.from_json(trial.live),
        )
        for trial in trials
    ]


def within(spec: StudySpec, trials: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return the trials that count in the study's space, which may have been another when they began."""
    if spec.space_version == 1:
        return list(trials)
    inside = [(trial, spec.present(trial.configuration)) for trial in trials]
    return [
        replace(trial, configuration=found, stale=spec.is_stale(trial.number, found))
        for trial, found in inside
        if found is not None
    ]


def as_running(found: Snapshot, trial: Trial, seconds: float) -> Running:
    """Return a trial that runs, with its measurements, as pruning policies see it."""
    steps = _steps(found.principal, found.study, [trial])
    return Running(trial.number, trial.params, seconds, steps.get(trial.number, ()))


def as_pending(configurations: Sequence[Configuration], first_number: int) -> list[TrialRecord]:
    """Return configurations that are about to become trials, as tuners see them."""
    return [
        TrialRecord(number=first_number + index, configuration=configuration, state=TrialState.REQUESTED, metrics={})
        for index, configuration in enumerate(configurations)
    ]


def _make(found: Snapshot, spec: StudySpec) -> Learner:
    learner = Learner(tuner_for(spec.problem, method_of(spec)), 0)
    state = access.rows(DesignerState, found.principal).filter(study_id=found.study.pk).first()
    if state is not None:
        learner.tuner.load(state.state)
    return learner


def _feed(found: Snapshot, spec: StudySpec, learner: Learner) -> list[TrialRecord]:
    """Feed a tuner what finished since it was fed last, and return the trials that wait for a result."""
    # One statement is one snapshot, so no trial is missed between "waits" and "finished". The study's lock orders
    # commits, so that a snapshot holds a study's revisions without gaps.
    trials = access.rows(Trial, found.principal).filter(
        Q(state__in=OPEN_STATES) | Q(revision__gt=learner.seen), study_id=found.study.pk
    )
    seen = list(trials.order_by("revision", "number"))
    finished = [trial for trial in seen if trial.state not in OPEN_STATES and trial.number not in learner.counted]
    if finished:
        steps = _steps(found.principal, found.study, finished) if learner.tuner.uses_measurements else {}
        reported = as_seen(finished)
        learner.tuner.update(within(spec, reported), steps)
        learner.hours += sum(trial.seconds or 0.0 for trial in reported) / 3600
        learner.searched += sum(trial.is_of_search for trial in reported)
        learner.seen = finished[-1].revision
        learner.counted.update(trial.number for trial in finished)
    for trial in seen:
        if trial.origin != "added" and (learner.began is None or trial.created_at < learner.began):
            learner.began = trial.created_at
    waiting = [trial for trial in seen if trial.state in OPEN_STATES]
    return within(spec, as_seen(sorted(waiting, key=lambda trial: trial.number)))


def _remember(found: Snapshot, learner: Learner) -> None:
    found.tuner = None
    key = _key(found.study)
    # Another thread may have fed a tuner of its own meanwhile.
    other = _learners.pop(key)
    _learners.put(key, learner if other is None or other.seen <= learner.seen else other)


def _key(study: Study) -> _Key:
    return study.pk, study.created_at, spec_of(study).space_version


def _steps(principal: Principal, study: Study, trials: Sequence[Trial]) -> Mapping[int, Sequence[Step]]:
    """Return the measurements of the first objective, in the order of their steps, by trial number."""
    metric = spec_of(study).problem.metrics[0]
    numbers = {trial.pk: trial.number for trial in trials}
    steps: dict[int, list[Step]] = {}
    rows = access.rows(Measurement, principal).filter(trial_id__in=numbers).order_by("step")
    for trial_id, step, metrics, elapsed in rows.values_list("trial_id", "step", "metrics", "elapsed_seconds"):
        if metric in metrics:
            steps.setdefault(numbers[trial_id], []).append(Step(step, limited(metrics)[metric], elapsed))
    return steps


def _seconds(trial: Trial) -> float | None:
    """Return the running time that an agent measured, else that between start and end."""
    if trial.seconds is not None or trial.started_at is None or trial.finished_at is None:
        return trial.seconds
    return (trial.finished_at - trial.started_at).total_seconds()
