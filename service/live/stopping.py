"""The red button: end what runs in a live study and pause it. The agents put the old settings back at once."""

from __future__ import annotations

from dataclasses import dataclass

from service.core.lifecycle import StudyState, TrialState
from service.live import plans
from service.live.system import state_of
from service.studies import actions
from service.studies.change import changing
from service.studies.models import Trial
from service.studies.specs import check_identifier
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tell

_LONGEST_REASON = 1000


@dataclass(frozen=True, slots=True)
class Stopped:
    """The trials that were stopped, and whether kept settings stay in force, which a person on the machine ends."""

    trials: tuple[int, ...]
    kept: bool


def stop(principal: Principal, study: str, *, reason: str = "") -> Stopped:
    """Pause a live study and end its running trials, whose agents revert at once. A second call changes nothing.

    Raises InvalidInput, NotFound (`study_not_found`, `not_live`).
    """
    check_identifier("reason", reason, _LONGEST_REASON)
    with changing(principal, study, "live.stop", detail={"reason": reason} if reason else None) as work:
        plans.expect_live(work)
        said = reason or f"Stopped by {principal.actor}."
        if work.study.state == StudyState.ACTIVE:
            actions.step_study(work, StudyState.PAUSED, said)
        running = access.rows(Trial, principal).filter(study_id=work.study.pk, state=TrialState.ACTIVE)
        ended = list(running.order_by("number"))
        for trial in ended:
            work.stops_trials = True
            tell.finish(work, trial, TrialState.PRUNED, reason=said)
        kept = any(one["in_force"] for one in state_of(principal, work.study).kept)
        return Stopped(tuple(trial.number for trial in ended), kept)
