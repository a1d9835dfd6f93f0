"""Finding, locking and expiring leases. The lock of the study is taken before the lock of the lease."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.conf import settings

from service.core.errors import Conflict
from service.core.lifecycle import LeaseState, TrialState, check_step
from service.core.reasons import Reason
from service.fleet.models import Agent, Lease
from service.live import silent
from service.live.system import Offered
from service.studies import actions
from service.studies.change import Deleted, Work, changing
from service.studies.isolated import isolated
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.tenancy.statements import Select
from service.trials import tell

_select_lease = Select(Lease, "id = %s AND agent_id = %s", without=["invocation"])
_select_trial = Select(Trial, "id = %s")


def find_lease(principal: Principal, agent: Agent, lease: str) -> Lease:
    """Return a lease of an agent in any state. Raises Conflict (`lease_lost`)."""
    lease_id = to_id(lease)
    found = [] if lease_id is None else _select_lease(principal, lease_id, agent.pk)
    if not found:
        raise Conflict("lease_lost", f"Agent {agent.agent_id!r} has no lease {lease!r}.")
    return found[0]


def read_lease(principal: Principal, agent: Agent, lease: Lease) -> Lease:
    """Return the present lease with its trial, under the lock of the study. Raises Deleted."""
    found, trials = _select_lease(principal, lease.id, agent.pk), _select_trial(principal, lease.trial_id)
    if not found or not trials:
        raise Deleted("lease_not_found", "The lease was deleted together with its study.")
    found[0].trial, found[0].agent = trials[0], agent
    return found[0]


def lock_lease(work: Work, lease_id: UUID) -> Lease:
    """Return a lease of one of the study's trials, locked until the transaction ends. Raises Deleted."""
    leases = access.rows(Lease, work.principal).select_for_update(of=("self",)).select_related("trial", "agent")
    try:
        return leases.defer("invocation").get(id=lease_id)
    except Lease.DoesNotExist:
        raise Deleted("lease_not_found", "The lease was deleted together with its study.") from None


def expect_held(lease: Lease) -> None:
    """Check that a lease is held. Raises Conflict (`lease_lost`)."""
    if lease.state != LeaseState.HELD:
        raise Conflict("lease_lost", f"Lease {lease.id} is {lease.state}.")


def is_untouched(lease: Lease) -> bool:
    """Return whether the trial of an expired lease still waits for another agent."""
    return lease.trial.state == TrialState.REQUESTED and lease.trial.attempt == lease.attempt + 1


def return_trial(work: Work, lease: Lease) -> None:
    """Return the trial to its expired lease, without counting the expiry as an attempt."""
    trial = lease.trial
    trial.attempt = lease.attempt
    trial.agent, trial.node = lease.agent.name, lease.node
    actions.step_trial(work, trial, TrialState.ACTIVE)


def overdue() -> list[tuple[int, int, UUID]]:
    """Return leases that were not renewed in time: tenant, study and lease."""
    return [(tenant_id, study_id, lease_id) for tenant_id, study_id, lease_id in access.across("overdue_leases")]


def expire(late: Sequence[tuple[int, int, UUID]]) -> None:
    """Expire overdue leases, each in a separate transaction. A second call changes nothing."""
    for tenant_id, study_id, lease_id in late:
        isolated(partial(_expire, Principal.system(tenant_id), study_id, lease_id), tenant_id, study_id)


def _expire(principal: Principal, study_id: int, lease_id: UUID) -> None:
    with suppress(Deleted), changing(principal, study_id, "lease.expire") as work:
        lease = lock_lease(work, lease_id)
        if lease.state != LeaseState.HELD or lease.expires_at >= work.time:
            return
        check_step("lease", LeaseState.HELD, LeaseState.EXPIRED)
        work.revise()
        work.target, work.detail = f"trial/{lease.trial.number}", {"lease": str(lease.id)}
        work.slot_freed = True
        lease.state = LeaseState.EXPIRED
        access.save(principal, lease, "state")
        silent.note_loss(work, lease.id, Offered.of(lease.agent.components, work.study.component))
        if lease.trial.state == TrialState.ACTIVE:
            agent = lease.agent.name
            text = f"Agent {agent!r} has stopped sending heartbeats."
            tell.try_again(work, lease.trial, Reason(text, "agent_silent", agent=agent))


def lease_time() -> timedelta:
    """Return how long a lease stays valid without a heartbeat."""
    return timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)


def plain(text: str, longest: int | None = None) -> str:
    """Return at most `longest` characters of an agent's text, without NUL, which PostgreSQL refuses."""
    return text.replace("\0", "")[:longest]


def to_id(text: str) -> UUID | None:
    """Return the id in the text of an agent; None if it is not an id."""
    try:
        return UUID(text)
    except ValueError:
        return None
