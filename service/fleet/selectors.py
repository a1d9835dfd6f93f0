"""Questions about agents."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Count

from service.core.errors import NotFound
from service.core.lifecycle import LeaseState
from service.fleet import agents
from service.fleet.models import Agent, Lease
from service.tenancy import access
from service.tenancy.principal import Principal


def list_agents(principal: Principal) -> list[Agent]:
    """All agents by name, with `busy` (open leases) and `online` (heard of within the time of a lease)."""
    return _judge(principal, agents.all_of(principal))


def get_agent(principal: Principal, agent_id: str) -> Agent:
    """One agent, as in `list_agents`. Raises NotFound."""
    found = agents.find(principal, agent_id)
    if found is None:
        raise NotFound("agent_not_found", f"There is no agent {agent_id!r}.")
    return _judge(principal, [found])[0]


def _judge(principal: Principal, found: Sequence[Agent]) -> list[Agent]:
    held = access.rows(Lease, principal).filter(state=LeaseState.HELD)
    busy = dict(held.values_list("agent_id").annotate(Count("pk")).order_by())
    for agent in found:
        agent.busy = busy.get(agent.pk, 0)
        agent.online = agents.is_online(agent)
    return list(found)
