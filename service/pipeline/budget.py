"""What a study may still spend."""

from __future__ import annotations

from service.core.errors import Conflict
from service.core.lifecycle import StudyState, TrialState
from service.studies import actions
from service.studies.models import Study
from service.studies.specs import spec_of
from service.tenancy.principal import Principal


def allowed(study: Study, wanted: int) -> int:
    """How many of `wanted` further trials a locked study may have: none unless it is ACTIVE and has budget left."""
    return 0 if refusal(study) is not None else min(wanted, _left(study, wanted))


def refusal(study: Study) -> Conflict | None:
    """Why a locked study may have no further trial; None when it may."""
    if study.state != StudyState.ACTIVE:
        reason = f" ({study.state_reason})" if study.state_reason else ""
        return Conflict(
            "study_not_active",
            f"Study {study.name!r} is {study.state}{reason}: it suggests nothing. Only an ACTIVE study does.",
            state=str(study.state),
        )
    if study.deadline is not None and study.deadline <= study.database_time:
        return Conflict("budget_exhausted", f"The time budget of study {study.name!r} is over.")
    if _left(study, 1) <= 0:
        return Conflict(
            "budget_exhausted",
            f"Study {study.name!r} has had all {spec_of(study).budget.max_trials} trials of its budget;"
            f" {study.open_count} of them still wait for a result.",
            open=study.open_count,
        )
    return None


def complete_when_spent(study: Study) -> None:
    """Complete a locked study whose last trial of the budget has finished."""
    most = spec_of(study).budget.max_trials
    if most is None or study.state not in (StudyState.ACTIVE, StudyState.PAUSED):
        return
    if study.finished_count - study.added_count >= most:
        actions.step_study(study, StudyState.COMPLETED, f"All {most} trials of the budget are done.")


def complete_when_late(principal: Principal, study: Study) -> bool:
    """Complete a locked study whose time is over: nothing new starts, what runs may still finish."""
    if study.deadline is None or study.deadline > study.database_time:
        return False
    if study.state not in (StudyState.ACTIVE, StudyState.PAUSED):
        return False
    actions.step_study(
        study, StudyState.COMPLETED, f"The time budget of {spec_of(study).budget.max_seconds:g} s is over."
    )
    actions.withdraw_trials(principal, study, [TrialState.REQUESTED], "The study's time was over before it ran.")
    return True


def _left(study: Study, unlimited: int) -> int:
    most = spec_of(study).budget.max_trials
    return unlimited if most is None else most - (study.trial_count - study.added_count)
