"""Queries of agents and their leases."""

from __future__ import annotations

from collections.abc import Sequence

from service.core.errors import NotFound
from service.core.lifecycle import LeaseState
from service.fleet import agents
from service.fleet.models import Agent, Lease
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal


def list_agents(principal: Principal) -> list[Agent]:
    """Return all agents by name, with `running`, `busy` and `online`."""
    return _judge(principal, agents.all_of(principal))


def get_agent(principal: Principal, agent_id: str) -> Agent:
    """Return one agent as `list_agents` does. Raises NotFound."""
    found = agents.find(principal, agent_id)
    if found is None:
        raise NotFound("agent_not_found", f"There is no agent {agent_id!r}.")
    return _judge(principal, [found])[0]


def leases_of(principal: Principal, trial: Trial) -> list[Lease]:
    """Return the leases of a trial, the first one first."""
    held = access.rows(Lease, principal).filter(trial_id=trial.pk)
    return list(held.select_related("agent").order_by("granted_at"))


def _judge(principal: Principal, found: Sequence[Agent]) -> list[Agent]:
    held = access.rows(Lease, principal).filter(state=LeaseState.HELD, agent_id__in=[agent.pk for agent in found])
    running: dict[int, list[Lease]] = {}
    for lease in (
        held.select_related("study", "trial").defer("study__spec", "settlement", "invocation").order_by("granted_at")
    ):
        running.setdefault(lease.agent_id, []).append(lease)
    for agent in found:
        agent.running = running.get(agent.pk, [])
        agent.busy = len(agent.running)
        agent.online = agents.is_online(agent)
    return list(found)
