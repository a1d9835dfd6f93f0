"""The budget of a study: how many trials and how much time it may still spend."""

from __future__ import annotations

from service.core.errors import Conflict
from service.core.lifecycle import StudyState
from service.core.reasons import Reason
from service.studies.change import Snapshot
from service.studies.models import Study
from service.studies.specs import budget_of


def allowed(found: Snapshot, wanted: int) -> int:
    """Return how many of `wanted` further trials a study may have: none unless it is ACTIVE and has budget left.

    The policy of the final check limits the check's own trials.
    """
    if refusal(found) is not None:
        return 0
    return wanted if found.study.final_check is not None else min(wanted, left(found.study, wanted))


def refusal(found: Snapshot) -> Conflict | None:
    """Return why a study may have no further trial; None when it may."""
    study = found.study
    if study.state != StudyState.ACTIVE:
        reason = f" ({study.state_reason})" if study.state_reason else ""
        return Conflict(
            "study_not_active",
            f"Study {study.name!r} is {study.state}{reason}: it suggests nothing. Only an ACTIVE study does.",
            state=str(study.state),
        )
    if study.final_check is not None:
        return awaiting(study) if study.final_check["best"] is None and study.open_count else None
    if study.closing is not None and study.open_count:
        return repeating(study)
    late = study.deadline is not None and study.deadline <= found.time
    if (late or left(study, 1) <= 0) and check_follows(found):
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


def check_follows(found: Snapshot) -> bool:
    """Return whether a final check follows the search: the spec has one, or the study had one after an earlier end."""
    return found.spec.final_check is not None or found.study.verdict is not None


def spent(study: Study) -> str | None:
    """Return why the search of a study is over if the last trial of its budget has finished."""
    most = budget_of(study).max_trials
    if most is None or study.finished_count - study.added_count < most:
        return None
    return Reason(f"All {most} trials of the budget are done.", "budget_done", trials=most)


def over(found: Snapshot) -> str | None:
    """Return why the search of a study is over if its time is used up."""
    if found.study.deadline is None or found.study.deadline > found.time:
        return None
    seconds = budget_of(found.study).max_seconds
    return Reason(f"The time budget of {seconds:g} s is over.", "time_over", seconds=seconds)


def awaiting(study: Study) -> Conflict:
    """Return the refusal while the final check has to wait for trials that are being measured."""
    return Conflict(
        "results_awaited",
        f"The search of study {study.name!r} is over. Its final check goes on when the {study.open_count} trials that"
        " are being measured have a result.",
        open=study.open_count,
    )


def repeating(study: Study) -> Conflict:
    """Return the refusal while the last repeats of a search, which a stopping rule ends, have to wait for results."""
    if study.open_count:
        wait = f"They go on when the {study.open_count} trials that are being measured have a result."
    else:
        wait = "None of them has the values that the call fixes."
    return Conflict(
        "results_awaited",
        f"A stopping rule ends the search of study {study.name!r}, and only repeats are left. {wait}",
        open=study.open_count,
    )


def left(study: Study, unlimited: int) -> int:
    """Return how many further trials the budget of a study's search holds; `unlimited` where nothing limits them."""
    most = budget_of(study).max_trials
    return unlimited if most is None else most - (study.trial_count - study.added_count)
