"""Configurations of the user's own that are to be measured before anything else is suggested."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import IntegrityError

from service.core.errors import Conflict, InvalidInput, ResourceExhausted
from service.core.lifecycle import StudyState, TrialState
from service.studies import actions, selectors
from service.studies.models import Study, Trial
from service.studies.specs import check_identifier, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget
from service.trials.quotas import meter

MOST_AT_ONCE = 1000


def enqueue_trials(
    principal: Principal, study: str, *, params: Mapping[str, object], count: int = 1, request_id: str = ""
) -> tuple[Study, list[Trial]]:
    """Put `count` trials of one configuration behind those that wait already.

    They count against the budget. Agents take them as any other trial; asks get them before what is suggested. Raises
    InvalidInput, NotFound, Conflict (`study_not_active`, `budget_exhausted`), ResourceExhausted (`quota_exceeded`).
    """
    if not 1 <= count <= MOST_AT_ONCE:
        raise InvalidInput("count", count, f"1 to {MOST_AT_ONCE}")
    check_identifier("request_id", request_id, 100)
    try:
        meter.room_for_trials(principal, count)
        with access.work(principal):
            locked = actions.lock(principal, study)
            return locked, _enqueue(principal, locked, params, count, request_id)
    except (IntegrityError, Conflict, ResourceExhausted):
        # Sent twice: answered as the first time, even if the first took the last of the room.
        before = selectors.find_trial(principal, study, request_id)
        if before is None:
            raise
        numbers = range(before.number, before.number + count)
        again = access.rows(Trial, principal).filter(study_id=before.study_id, number__in=numbers)
        return before.study, list(again.order_by("number"))


def _enqueue(
    principal: Principal, study: Study, params: Mapping[str, object], count: int, request_id: str
) -> list[Trial]:
    if study.state not in (StudyState.ACTIVE, StudyState.PAUSED) or study.final_check is not None:
        state = "in its final check" if study.final_check is not None else study.state
        raise Conflict("study_not_active", f"Study {study.name!r} is {state}: it takes no more trials.")
    space = spec_of(study).space
    configuration = space.validate(params)
    left = max(0, budget.left(study, count))
    if left < count:
        raise Conflict(
            "budget_exhausted", f"The budget of study {study.name!r} holds {left} more trials, not {count}.", left=left
        )
    # The first one alone carries the request: the others have the numbers that follow.
    trials = actions.add_trials(
        principal,
        study,
        [configuration],
        state=TrialState.REQUESTED,
        origin="enqueued",
        request_id=request_id or None,
    )
    trials += actions.add_trials(
        principal, study, [configuration] * (count - 1), state=TrialState.REQUESTED, origin="enqueued"
    )
    study.default_done |= space.has_explicit_default and configuration == space.default()
    detail = {"trials": [trial.number for trial in trials]}
    actions.conclude(principal, study, "trial.enqueue", f"trial/{trials[0].number}", detail)
    return trials
