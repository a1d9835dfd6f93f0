"""The trials of a roll-out of kept settings. They do not count against the budget of the search, and may follow it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from service.core.lifecycle import StudyState, TrialState
from service.core.reasons import Reason, restored, stored
from service.policies.rollout import Rollout
from service.studies import actions
from service.studies.change import Work
from service.studies.models import Study, Trial
from service.tenancy import access
from service.trials.quotas import meter

ORIGIN = "rollout"
_OVER = Reason("The search was over before it ran.", "search_over")
NOT_WANTED = Reason("The roll-out of the kept settings is over.", "rollout_over")


def of(study: Study) -> Rollout | None:
    """Return the roll-out that goes on in a live study; None if there is none."""
    return None if study.rollout is None else Rollout.from_json(study.rollout)


def store(work: Work, rollout: Rollout | None) -> None:
    """Store a roll-out, or that it is over, and when its next trial is due."""
    study = work.study
    study.rollout = None if rollout is None else rollout.to_json()
    due = None if rollout is None else max(work.time, datetime.fromtimestamp(rollout.due_at, UTC))
    study.rollout_due = due
    access.save(work.principal, study, "rollout", "rollout_due")


def add_due(work: Work) -> None:
    """Add the next trial of the roll-out, if it is due and no other trial is open."""
    study, rollout = work.study, of(work.study)
    if rollout is None or study.state != StudyState.ACTIVE or study.open_count:
        return
    if rollout.due_at > work.time.timestamp() or not meter.room(work.principal, 1):
        return
    actions.add_trials(work, [dict(rollout.params)], state=TrialState.REQUESTED, origin=ORIGIN)
    study.added_count += 1


def is_wanted(study: Study, trial: Trial) -> bool:
    """Return whether a waiting trial is still needed: one of a roll-out is not after its end."""
    return trial.origin != ORIGIN or study.rollout is not None


def note_search_over(work: Work, reason: str) -> None:
    """Keep why the search is over while a roll-out goes on, which ends the study."""
    study, rollout = work.study, of(work.study)
    assert rollout is not None
    if rollout.search_over is not None:
        return
    waiting = access.rows(Trial, work.principal).filter(study_id=study.pk, state=TrialState.REQUESTED)
    numbers = list(waiting.exclude(origin=ORIGIN).values_list("number", flat=True))
    actions.withdraw_waiting(work, numbers, _OVER)
    study.exhausted, study.deadline = True, None
    said = {**rollout.to_json(), "search_over": {"text": str(reason), "data": stored(reason)}}
    store(work, Rollout.from_json(said))
    text = "The search is over. The kept settings are still rolled out or watched."
    study.explain(Reason(text, "live_watching"))


def end_reason(rollout: Rollout) -> str:
    """Return why the search has ended during the roll-out; empty if it goes on."""
    said: Any = rollout.search_over
    return "" if said is None else restored(said["text"], said["data"])
