"""Kept settings that were taken back between two trials, as the agents' reports show."""

from __future__ import annotations

from contextlib import suppress

from service.core.lifecycle import TrialState
from service.core.reasons import Reason
from service.live import rolling
from service.live.models import LiveStudy
from service.live.system import state_of
from service.studies.change import Deleted, changing
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import rollouts


def note(principal: Principal, study_id: int, reason: str) -> None:
    """Note that the settings before the first trial of a study are in force again, if kept ones were until now."""
    found = access.rows(LiveStudy, principal).filter(pk=study_id).first()
    if found is None or not _in_force(found):
        return
    with suppress(Deleted), changing(principal, study_id, "live.taken_back", detail={"reason": reason}) as work:
        state = state_of(principal, work.study)
        running = access.rows(Trial, principal).filter(study_id=study_id, state=TrialState.ACTIVE)
        if not _in_force(state) or running.filter(origin=rollouts.ORIGIN).exists():
            # The result of a step of a roll-out says what has become of the settings.
            return
        work.revise()
        # A roll-out of these settings ends with them.
        text = f"Kept settings were taken back: {reason}" if reason else "Kept settings were taken back."
        rolling.forget(work, state, Reason(text, "live_taken_back", reason=reason))
        access.put(principal, state)


def _in_force(state: LiveStudy) -> bool:
    """Return whether settings are in force that an agent guards. Those that are written durably need no guard."""
    return any(one["in_force"] and not one.get("durable") for one in state.kept)
