"""Leases of ask/tell clients: a client that is silent for too long loses its trials to the next one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from django.db.models import F
from django.db.models.functions import Least, Now

from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.reasons import Reason
from service.studies import actions, selectors
from service.studies.change import Deleted, Work, changing
from service.studies.isolated import isolated
from service.studies.models import Trial
from service.studies.specs import check_identifier, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tell

SHORTEST, LONGEST = 10.0, 7 * 24 * 3600.0
MOST_TRIALS = 1000


def check_seconds(seconds: float | None) -> float | None:
    """Return the length of a lease. Raises InvalidInput (`lease_seconds`)."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not math.isfinite(seconds) or not SHORTEST <= seconds <= LONGEST:
        raise InvalidInput("lease_seconds", seconds, f"{SHORTEST:g} to {LONGEST:g} seconds")
    return seconds


def renew(
    principal: Principal, study: str, *, client_id: str, trials: Sequence[int], lease_seconds: float
) -> list[int]:
    """Let a client keep its trials for `lease_seconds` from now, and return the numbers of those that it has.

    The study's own time limit for a trial stays. A trial whose lease is over returns to this client if it still waits
    for another one. Raises InvalidInput, NotFound.
    """
    check_identifier("client_id", client_id, 200)
    check_seconds(lease_seconds)
    if len(trials) > MOST_TRIALS:
        raise InvalidInput("trials", f"{len(trials)} numbers", f"at most {MOST_TRIALS}")
    found = selectors.get_study(principal, study)
    wanted = {number for number in trials if 0 < number < found.next_number}
    mine = access.rows(Trial, principal).filter(study_id=found.pk, number__in=wanted, client_id=client_id)
    active = mine.filter(state=TrialState.ACTIVE)
    end, limit = Now() + timedelta(seconds=lease_seconds), spec_of(found).trial_timeout_seconds
    # This is no change of the study, because nobody else sees it.
    active.update(leased_until=end if limit is None else Least(end, F("started_at") + timedelta(seconds=limit)))
    kept = set(active.values_list("number", flat=True))
    lost = set(mine.filter(state=TrialState.REQUESTED, number__in=wanted - kept).values_list("number", flat=True))
    if lost:
        kept |= _take_back(principal, study, actions.Client(client_id, lease_seconds), lost)
    return sorted(kept)


def _take_back(principal: Principal, study: str, client: actions.Client, numbers: set[int]) -> set[int]:
    with changing(principal, study, "trial.take_back", client=client.name) as work:
        rows = access.rows(Trial, principal).filter(
            study_id=work.study.pk, number__in=numbers, client_id=client.name, state=TrialState.REQUESTED, attempt__gt=1
        )
        waiting = list(rows)
        if waiting:
            actions.start_trials(work, waiting, client=client)
            work.detail = {"client": client.name, "trials": [trial.number for trial in waiting]}
    return {trial.number for trial in waiting}


def overdue() -> list[tuple[int, int, int]]:
    """Return trials that their clients have not renewed in time: tenant, study and trial."""
    return [(tenant_id, study_id, trial_id) for tenant_id, study_id, trial_id in access.across("overdue_trials")]


def expire(late: Sequence[tuple[int, int, int]]) -> None:
    """Give overdue trials to the next client, each in a separate transaction. A second call changes nothing."""
    for tenant_id, study_id, trial_id in late:
        isolated(partial(_expire, Principal.system(tenant_id), study_id, trial_id), tenant_id, study_id)


def _expire(principal: Principal, study_id: int, trial_id: int) -> None:
    with suppress(Deleted), changing(principal, study_id, "trial.expire") as work:
        late = access.rows(Trial, principal).filter(pk=trial_id, state=TrialState.ACTIVE, leased_until__lt=work.time)
        trial = late.first()
        if trial is not None:
            work.target = f"trial/{trial.number}"
            tell.try_again(work, trial, _reason(work, trial))


def _reason(work: Work, trial: Trial) -> str:
    name, limit = trial.client_id, work.spec.trial_timeout_seconds
    client = f"Client {name!r}" if name else "The client"
    if limit is not None and trial.started_at and work.time - trial.started_at >= timedelta(seconds=limit):
        text = f"{client} has reported no result within the trial_timeout of {limit:g} s."
        return Reason(text, "client_too_slow", client=name, seconds=limit)
    text = f"{client} has reported no result, and has stopped sending heartbeats."
    return Reason(text, "client_silent", client=name)
