"""Configurations that a user chooses, to be measured before anything else is suggested."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import IntegrityError

from service.core.errors import Conflict, InvalidInput, ResourceExhausted
from service.core.lifecycle import StudyState, TrialState
from service.studies import actions, selectors
from service.studies.change import Work, changing
from service.studies.models import Study, Trial
from service.studies.specs import check_identifier
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import budget
from service.trials.quotas import meter

MOST_AT_ONCE = 1000


def enqueue_trials(
    principal: Principal, study: str, *, params: Mapping[str, object], count: int = 1, request_id: str = ""
) -> tuple[Study, list[Trial]]:
    """Put `count` trials of one configuration behind the trials that wait already, and return the study and them.

    Active parameters that `params` leaves out take their defaults. The trials count against the budget. Agents take
    them as any other trial; asks get them before new suggestions.

    Raises InvalidInput, NotFound, Conflict (`study_not_active`, `budget_exhausted`), ResourceExhausted
    (`quota_exceeded`).
    """
    if not 1 <= count <= MOST_AT_ONCE:
        raise InvalidInput("count", count, f"1 to {MOST_AT_ONCE}")
    check_identifier("request_id", request_id, 100)
    try:
        meter.room_for_trials(principal, count)
        with changing(principal, study, "trial.enqueue") as work:
            return work.study, _enqueue(work, params, count, request_id)
    except (IntegrityError, Conflict, ResourceExhausted):
        # A request that is sent twice gets the first answer, even if the first used up the quota.
        before = selectors.find_trial(principal, study, request_id)
        if before is None:
            raise
        numbers = range(before.number, before.number + count)
        again = access.rows(Trial, principal).filter(study_id=before.study_id, number__in=numbers)
        return before.study, list(again.order_by("number"))


def _enqueue(work: Work, params: Mapping[str, object], count: int, request_id: str) -> list[Trial]:
    study, space = work.study, work.spec.space
    if study.state not in (StudyState.ACTIVE, StudyState.PAUSED) or study.final_check is not None:
        state = "in its final check" if study.final_check is not None else study.state
        raise Conflict("study_not_active", f"Study {study.name!r} is {state}: it takes no more trials.")
    context = work.spec.problem.context
    if context:
        # A context is never chosen, so a missing value has no default.
        context.check({name: params[name] for name in context.names if name in params}, space, "params")
    configuration = space.validate(params, complete=True)
    left = max(0, budget.left(study, count))
    if left < count:
        raise Conflict(
            "budget_exhausted",
            f"The budget of study {study.name!r} allows {left} more trials, not {count}. Enqueue at most {left}, "
            "or extend the budget.",
            left=left,
        )
    # Only the first trial stores the request id. The other trials have the numbers that follow.
    trials = actions.add_trials(
        work, [configuration], state=TrialState.REQUESTED, origin="enqueued", request_id=request_id or None
    )
    trials += actions.add_trials(work, [configuration] * (count - 1), state=TrialState.REQUESTED, origin="enqueued")
    study.default_done |= space.has_explicit_default and configuration == space.default()
    work.target = f"trial/{trials[0].number}"
    work.detail = {"trials": [trial.number for trial in trials]}
    return trials
