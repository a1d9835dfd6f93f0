"""The steps of a study and its trials, each within a change of the study (`change.py`)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from service.core.errors import NotFound
from service.core.lifecycle import StudyState, TrialState, check_step
from service.core.live_results import LiveOutcome
from service.core.reasons import stored
from service.core.space import Configuration
from service.studies.change import Work
from service.studies.models import Operation, Study, Trial
from service.studies.specs import budget_of, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tenancy.statements import Insert, Select, Update

OPEN_STATES = (TrialState.REQUESTED, TrialState.ACTIVE)

_select_trials = Select(Trial, "study_id = %s AND number = ANY(%s)")
_insert_trials = Insert(Trial)
_MEASURED_ON = {
    "measured_on": """ARRAY(
        SELECT other.node FROM studies_trial AS other
        WHERE other.tenant_id = studies_trial.tenant_id AND other.study_id = studies_trial.study_id
            AND other.key = studies_trial.key AND other.id <> studies_trial.id
            AND other.node <> '' AND other.state IN ('ACTIVE', 'COMPLETED', 'PRUNED'))"""
}
_select_waiting = Select(
    Trial, "study_id = %s AND state = 'REQUESTED'", ending="ORDER BY number LIMIT %s", extra=_MEASURED_ON
)
_select_places = Select(Trial, "id = %s", extra=_MEASURED_ON)
# What `Trial.explain` sets.
_REASON = ("reason", "reason_data")
_start_trials = Update(Trial, "state", "agent", "client_id", *_REASON, "revision", "started_at", "leased_until")
_lease_trials = Update(Trial, "revision", "started_at", "leased_until")
_begin_trial = Update(Trial, "revision", *_REASON, "node", "started_at")
_update_trial = Update(
    Trial,
    *("state", "revision", *_REASON, "metrics", "breaks", "agent", "node", "doubt", "interference", "machine"),
    *("attempt", "seconds", "started_at", "finished_at", "leased_until", "live"),
)


@dataclass(frozen=True, slots=True)
class Client:
    """A client that gets trials: its name, and for how many seconds; None: until it ends them."""

    name: str = ""
    lease_seconds: float | None = None

    @classmethod
    def of(cls, operation: Operation) -> Client:
        """Return the client that has requested an operation."""
        return cls(operation.client_id, operation.lease_seconds)


# Trials that wait have no client yet.
NOBODY = Client()


def configuration_key(study: Study, configuration: Configuration) -> str:
    """Return the digest of a configuration's canonical text, which is short enough for an index."""
    text = spec_of(study).space.key(configuration)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def add_trials(
    work: Work,
    configurations: Sequence[Configuration],
    *,
    state: TrialState,
    origin: str,
    client: Client = NOBODY,
    metrics: Mapping[str, float] | None = None,
    reason: str = "",
    request_id: str | None = None,
    rounds: Sequence[int | None] = (),
    repeats: Sequence[str] = (),
    planned: Sequence[Mapping[str, Any] | None] = (),
) -> list[Trial]:
    """Insert trials, numbered on from the study's last, and return them.

    `rounds`: of each trial, in a final check. `repeats`: why each trial measures a configuration again. `planned`: what
    is expected of each trial, in a live study.
    """
    if not configurations:
        return []
    study, now, revision = work.study, work.time, work.revise()
    trials = [
        Trial(
            study_id=study.pk,
            number=study.next_number + index,
            state=state,
            params=configuration,
            key=configuration_key(study, configuration),
            metrics=None if metrics is None else dict(metrics),
            breaks=_broken(study, state, metrics),
            origin=origin,
            reason=reason,
            reason_data=stored(reason),
            client_id=client.name,
            leased_until=_lease_end(work, client),
            revision=revision,
            request_id=request_id,
            round=rounds[index] if rounds else None,
            repeat=stored(repeats[index]) if repeats else None,
            live=_outlook(planned[index] if planned else None),
            created_at=now,
            started_at=None if state == TrialState.REQUESTED else now,
            finished_at=None if state in OPEN_STATES else now,
        )
        for index, configuration in enumerate(configurations)
    ]
    _insert_trials(work.principal, trials)
    for trial in trials:
        work.note(f"trial/{trial.number}", None, {"state": state})
    study.next_number += len(trials)
    _count(study, state, len(trials))
    max_seconds = budget_of(study).max_seconds
    if study.deadline is None and max_seconds is not None and study.final_check is None:
        study.deadline = now + timedelta(seconds=max_seconds)
    return trials


def _outlook(planned: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if planned is None else LiveOutcome(planned=dict(planned)).to_json()


def get_trial(work: Work, number: int) -> Trial:
    """Return a trial of the study. Raises NotFound."""
    found = [trial for trial in work.trials if trial.number == number] or get_trials(work, [number])
    return found[0]


def get_trials(work: Work, numbers: Sequence[int]) -> list[Trial]:
    """Return trials of the study in this order. Raises NotFound."""
    # A number beyond the column's range would be an error of the database.
    possible = [number for number in numbers if 0 < number < work.study.next_number]
    found = {trial.number: trial for trial in _select_trials(work.principal, work.study.pk, possible)}
    for number in numbers:
        if number not in found:
            raise NotFound("trial_not_found", f"Study {work.study.name!r} has no trial {number}.")
    return [found[number] for number in numbers]


def waiting_trials(work: Work, count: int) -> list[Trial]:
    """Return the first trials that wait to be given out, with `measured_on`."""
    return _select_waiting(work.principal, work.study.pk, count)


def measured_on(principal: Principal, trial: Trial) -> list[str]:
    """Return the nodes where other trials of the same configuration have been measured or run now, once for each."""
    return _select_places(principal, trial.pk)[0].measured_on


def begin_trial(work: Work, trial: Trial, node: str) -> None:
    """Note that a trial that has been ACTIVE since it was leased begins to run now, on this node."""
    trial.started_at = work.time
    trial.node = node
    trial.explain("")
    trial.revision = work.revise()
    _begin_trial(work.principal, trial)


def step_trial(
    work: Work, trial: Trial, state: TrialState, *, metrics: Mapping[str, float] | None = None, reason: str = ""
) -> None:
    """Take a trial to another state if the table of steps allows it.

    Also writes the caller's changes of `agent`, `node`, `doubt`, `interference`, `machine`, `attempt`, `seconds`,
    `started_at`, `leased_until` and `live`.
    """
    check_step("trial", TrialState(trial.state), state)
    after: dict[str, object] = {"state": state}
    if metrics is not None:
        after["metrics"] = dict(metrics)
    if reason:
        after["reason"] = reason
    work.note(f"trial/{trial.number}", {"state": trial.state}, after)
    trial.revision = work.revise()
    _count(work.study, TrialState(trial.state), -1)
    _count(work.study, state, 1)
    trial.state = state
    trial.explain(reason)
    if metrics is not None:
        trial.metrics = dict(metrics)
        trial.breaks = _broken(work.study, state, metrics)
    if state in OPEN_STATES:
        trial.started_at = work.time if state == TrialState.ACTIVE else None
    else:
        trial.finished_at = work.time
    _update_trial(work.principal, trial)


def replace_configuration(work: Work, trial: Trial, configuration: Configuration) -> None:
    """Give an open trial another configuration."""
    work.note(f"trial/{trial.number}", {"params": trial.params}, {"params": configuration})
    trial.params, trial.key = configuration, configuration_key(work.study, configuration)
    touch_trial(work, trial, "params", "key")


def start_trials(work: Work, trials: Sequence[Trial], *, agent: str = "", client: Client = NOBODY) -> None:
    """Take REQUESTED trials to ACTIVE, on an agent or with a client, with one statement."""
    revision = work.revise()
    taker = {"agent": agent} if agent else {"client": client.name}
    until = None if agent else _lease_end(work, client)
    for trial in trials:
        check_step("trial", TrialState(trial.state), TrialState.ACTIVE)
        work.note(f"trial/{trial.number}", {"state": trial.state}, {"state": TrialState.ACTIVE, **taker})
        trial.state = TrialState.ACTIVE
        trial.explain("")
        trial.agent, trial.client_id = agent, client.name
        trial.revision, trial.started_at, trial.leased_until = revision, work.time, until
    _start_trials(work.principal, *trials)
    _count(work.study, TrialState.REQUESTED, -len(trials))
    _count(work.study, TrialState.ACTIVE, len(trials))


def lease_again(work: Work, trials: Sequence[Trial], client: Client) -> None:
    """Give a client its ACTIVE trials a second time, with one statement: it begins to measure them now."""
    revision, until = work.revise(), _lease_end(work, client)
    for trial in trials:
        trial.revision, trial.started_at, trial.leased_until = revision, work.time, until
    _lease_trials(work.principal, *trials)


def _lease_end(work: Work, client: Client) -> datetime | None:
    """Return until when a client has the trials that it gets now: its lease, and at most the study's time for a trial.

    None: without an end.
    """
    ends = [one for one in (client.lease_seconds, spec_of(work.study).trial_timeout_seconds) if one is not None]
    return work.time + timedelta(seconds=min(ends)) if ends else None


def touch_trial(work: Work, trial: Trial, *fields: str) -> None:
    """Give a trial that changed without a step the change's revision, and write these of its columns."""
    trial.revision = work.revise()
    access.save(work.principal, trial, "revision", *fields)


def step_study(work: Work, state: StudyState, reason: str = "") -> None:
    """Take the study to another state if the table of steps allows it."""
    study = work.study
    check_step("study", StudyState(study.state), state)
    work.note("study", {"state": study.state}, {"state": state, "reason": reason})
    work.revise()
    study.state = state
    study.explain(reason)


def withdraw_trials(work: Work, states: Sequence[TrialState], reason: str) -> None:
    """End all trials in these open states as FAILED, with one statement, and notify the agents that run them."""
    study = work.study
    trials = access.rows(Trial, work.principal).filter(study_id=study.pk, state__in=states)
    ended = _withdraw(work, trials, reason, states=list(states))
    if TrialState.REQUESTED in states:
        study.requested_count = 0
    if TrialState.ACTIVE in states:
        study.active_count = 0
        work.stops_trials = True
    study.finished_count += ended


def withdraw_waiting(work: Work, numbers: Sequence[int], reason: str) -> int:
    """End REQUESTED trials as FAILED, with one statement, and return their number."""
    study = work.study
    trials = access.rows(Trial, work.principal).filter(
        study_id=study.pk, number__in=numbers, state=TrialState.REQUESTED
    )
    ended = _withdraw(work, trials, reason, states=[TrialState.REQUESTED], numbers=list(numbers))
    study.requested_count -= ended
    study.finished_count += ended
    return ended


def withdraw_outside(work: Work, numbers: Sequence[int], reason: str) -> None:
    """End REQUESTED trials as FAILED, with one statement. They do not count against the study's budget."""
    work.study.added_count += withdraw_waiting(work, numbers, reason)


def _withdraw(work: Work, trials: QuerySet[Trial], reason: str, **which: object) -> int:
    ended = trials.update(
        state=TrialState.FAILED,
        reason=reason,
        reason_data=stored(reason),
        revision=work.revise(),
        finished_at=work.time,
    )
    if ended:
        work.note("trials", which, {"state": TrialState.FAILED, "reason": reason, "trials": ended})
    return ended


def _broken(study: Study, state: TrialState, metrics: Mapping[str, float] | None) -> list[str] | None:
    """Return the texts of the outcome constraints that the metrics of a COMPLETED trial break; None if none."""
    if state != TrialState.COMPLETED or metrics is None:
        return None
    return [one.text for one in spec_of(study).problem.broken(metrics)] or None


def _count(study: Study, state: TrialState, by: int) -> None:
    if state == TrialState.REQUESTED:
        study.requested_count += by
    elif state == TrialState.ACTIVE:
        study.active_count += by
    else:
        study.finished_count += by
