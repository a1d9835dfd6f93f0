"""What a study may still spend."""

from __future__ import annotations

from service.core.errors import Conflict
from service.core.lifecycle import StudyState
from service.studies.models import Study
from service.studies.specs import budget_of, spec_of


def allowed(study: Study, wanted: int) -> int:
    """How many of `wanted` further trials a locked study may have: none unless it is ACTIVE and has budget left.

    Those of the final check are limited by its policy.
    """
    if refusal(study) is not None:
        return 0
    return wanted if study.final_check is not None else min(wanted, left(study, wanted))


def refusal(study: Study) -> Conflict | None:
    """Why a locked study may have no further trial; None when it may."""
    if study.state != StudyState.ACTIVE:
        reason = f" ({study.state_reason})" if study.state_reason else ""
        return Conflict(
            "study_not_active",
            f"Study {study.name!r} is {study.state}{reason}: it suggests nothing. Only an ACTIVE study does.",
            state=str(study.state),
        )
    if study.final_check is not None:
        return awaiting(study) if study.final_check["best"] is None and study.open_count else None
    late = study.deadline is not None and study.deadline <= study.database_time
    if (late or left(study, 1) <= 0) and spec_of(study).final_check is not None:
        return awaiting(study)
    if late:
        return Conflict("budget_exhausted", f"The time budget of study {study.name!r} is over.")
    if left(study, 1) <= 0:
        return Conflict(
            "budget_exhausted",
            f"Study {study.name!r} has had all {budget_of(study).max_trials} trials of its budget;"
            f" {study.open_count} of them still wait for a result.",
            open=study.open_count,
        )
    return None


def spent(study: Study) -> str | None:
    """Why the search of a locked study is over, where its last trial of the budget has finished."""
    most = budget_of(study).max_trials
    if most is None or study.finished_count - study.added_count < most:
        return None
    return f"All {most} trials of the budget are done."


def over(study: Study) -> str | None:
    """Why the search of a locked study is over, where its time is."""
    if study.deadline is None or study.deadline > study.database_time:
        return None
    return f"The time budget of {budget_of(study).max_seconds:g} s is over."


def awaiting(study: Study) -> Conflict:
    """The refusal while the final check has to wait for trials that are being measured."""
    return Conflict(
        "results_awaited",
        f"The search of study {study.name!r} is over. Its final check goes on when the {study.open_count} trials that"
        " are being measured have a result.",
        open=study.open_count,
    )


def left(study: Study, unlimited: int) -> int:
    """How many further trials the budget of a locked study's search holds; `unlimited` where nothing limits them."""
    most = budget_of(study).max_trials
    return unlimited if most is None else most - (study.trial_count - study.added_count)
