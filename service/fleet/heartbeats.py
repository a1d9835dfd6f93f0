"""Heartbeats: agents report on the leases that they hold, and the answer says which to stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

from service.core.lifecycle import LeaseState, TrialState, check_step
from service.fleet import agents, installations
from service.fleet.leases import is_untouched, lease_time, lock_lease, plain, return_trial, to_id
from service.fleet.models import Agent, Lease
from service.studies import actions
from service.studies.change import Deleted, Work, changing
from service.studies.isolated import isolated
from service.studies.models import Trial
from service.studies.specs import spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tenancy.statements import Select
from service.trials import tell

# The maximum length of the reason why a trial does not start.
REASON_LENGTH = 1000

# Each heartbeat reads the leases of its agent, so the query selects only the columns that are needed.
_select_stops = Select(
    Lease,
    "agent_id = %s AND state = 'HELD'",
    without=[field.attname for field in Lease._meta.concrete_fields if field.attname != "id"],
    extra={
        f"trial_{name}": f"(SELECT {name} FROM studies_trial AS trial WHERE trial.id = trial_id)"  # nosec B608
        for name in ("state", "reason")
    },
)


@dataclass(frozen=True, slots=True)
class Renewal:
    """Leases to stop, with the reason, those that are no longer the agent's, and orders by component."""

    cancel: list[tuple[str, str]]
    lost: list[str]
    orders: Mapping[str, Mapping[str, Any]]


def renew(
    principal: Principal,
    *,
    agent_id: str,
    leases: Sequence[str],
    elapsed: Mapping[str, float] | None = None,
    waiting: Mapping[str, str] | None = None,
) -> Renewal:
    """Extend the leases that an agent holds, and return those to stop. Raises NotFound (`unknown_agent`).

    `elapsed`: the seconds for which the trials of some leases have run, without builds and queues. Pruning policies
    that need only this time decide here. `waiting`: why some trials do not start, for people.
    """
    agent = agents.known(principal, agent_id)
    agents.seen(principal, agent)
    ids = {lease: to_id(lease) for lease in leases}
    mine = access.rows(Lease, principal).filter(
        agent_id=agent.pk, state=LeaseState.HELD, id__in=[one for one in ids.values() if one is not None]
    )
    held: dict[UUID, Lease] = {}
    if ids:
        mine.update(expires_at=Now() + lease_time())
        held = {lease.id: lease for lease in mine.select_related("trial", "study").defer("study__spec", "invocation")}
        missing = [text for text, lease_id in ids.items() if lease_id not in held]
        held |= {lease.id: lease for lease in _hold_again(principal, agent, missing)}
    cancel: list[tuple[str, str]] = []
    lost: list[str] = []
    for text, lease_id in ids.items():
        lease = held.get(lease_id) if lease_id is not None else None
        if lease is None:
            lost.append(text)
        elif lease.trial.state != TrialState.ACTIVE:
            cancel.append((text, lease.trial.reason))
        else:
            why = plain((waiting or {}).get(text, ""), REASON_LENGTH)
            part = partial(_look, principal, lease, (elapsed or {}).get(text), why)
            reason = isolated(part, principal.tenant_id, lease.study_id)
            if reason is not None:
                cancel.append((text, reason))
    return Renewal(cancel, lost, installations.waiting(agent))


def _look(principal: Principal, lease: Lease, seconds: float | None, why: str) -> str | None:
    """Prune the trial of a lease, or store why it waits. Return the reason to stop it; None if it continues."""
    if seconds is not None and spec_of(lease.study).pruning:
        return _prune(principal, lease, seconds)
    if why != lease.trial.reason:
        _note_waiting(principal, lease, why)
    return None


def stops(principal: Principal, *, agent_id: str, leases: Sequence[str]) -> Renewal:
    """Return what `renew` would answer for leases that it has extended: leases to stop, and leases lost meanwhile.

    Leases granted to the agent since then are checked too. An expired lease is not reported: this call may be
    older than the agent's silence, and the next heartbeat may hold it again. Raises NotFound
    (`unknown_agent`).
    """
    agent = agents.known(principal, agent_id)
    held = _select_stops(principal, agent.pk)
    known = {str(lease.id) for lease in held}
    if missing := {text: to_id(text) for text in leases if text.lower() not in known}:
        ids = [lease_id for lease_id in missing.values() if lease_id is not None]
        expired = access.rows(Lease, principal).filter(agent_id=agent.pk, state=LeaseState.EXPIRED, id__in=ids)
        silent = set(expired.values_list("id", flat=True))
        missing = {text: lease_id for text, lease_id in missing.items() if lease_id not in silent}
    return Renewal(
        cancel=[(str(lease.id), lease.trial_reason) for lease in held if lease.trial_state != TrialState.ACTIVE],
        lost=list(missing),
        orders=installations.waiting(agent),
    )


def _note_waiting(principal: Principal, lease: Lease, reason: str) -> None:
    """Store on a leased trial why it does not start. An empty reason means that it is expected to start."""
    with suppress(Deleted), changing(principal, lease.study_id, "trial.wait", detail={"reason": reason}) as work:
        trial = _running(work, lease)
        if trial is not None:
            work.target = f"trial/{trial.number}"
            trial.explain(reason)
            actions.touch_trial(work, trial, "reason", "reason_data")


def _prune(principal: Principal, lease: Lease, seconds: float) -> str | None:
    """Prune a leased trial if a policy decides so. Return the reason to stop it; None if it continues."""
    with suppress(Deleted), changing(principal, lease.study_id, "trial.prune") as work:
        trial = _running(work, lease)
        if trial is not None and tell.prune(work, trial, seconds):
            work.target, work.detail = f"trial/{trial.number}", {"reason": trial.reason}
            return trial.reason
    return None


def _running(work: Work, lease: Lease) -> Trial | None:
    """Return the trial of a lease if it still runs under that lease."""
    trial = actions.get_trial(work, lease.trial.number)
    return trial if trial.state == TrialState.ACTIVE and trial.attempt == lease.attempt else None


def _hold_again(principal: Principal, agent: Agent, leases: Sequence[str]) -> list[Lease]:
    """Hold leases again that expired while their agent was silent, if their trials still wait for another agent.

    Return these leases, whose runs go on.
    """
    ids = [lease for lease in map(to_id, leases) if lease is not None]
    if not ids:
        return []
    expired = access.rows(Lease, principal).filter(agent_id=agent.pk, state=LeaseState.EXPIRED, id__in=ids)
    parts = [(partial(_hold, principal, found.study_id, found.id), found.study_id) for found in expired]
    again = [isolated(part, principal.tenant_id, study_id) for part, study_id in parts]
    return [lease for lease in again if lease is not None]


def _hold(principal: Principal, study_id: int, lease_id: UUID) -> Lease | None:
    with suppress(Deleted), changing(principal, study_id, "lease.renew") as work:
        lease = lock_lease(work, lease_id)
        full = work.study.active_count >= (work.study.parallelism or 0)
        if lease.state != LeaseState.EXPIRED or full or not is_untouched(lease):
            return None
        return_trial(work, lease)
        check_step("lease", LeaseState.EXPIRED, LeaseState.HELD)
        lease.state = LeaseState.HELD
        lease.expires_at = work.time + lease_time()
        access.save(principal, lease, "state", "expires_at")
        lease.study = work.study
        work.target, work.detail = f"trial/{lease.trial.number}", {"lease": str(lease.id)}
        return lease
    return None
