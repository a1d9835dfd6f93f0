"""Questions about agents."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from service.core.errors import NotFound
from service.core.lifecycle import LeaseState
from service.fleet.models import Agent, Lease
from service.tenancy import access
from service.tenancy.principal import Principal


def list_agents(principal: Principal) -> list[Agent]:
    """All agents by name, with `busy` (open leases) and `online` (heard of within the time of a lease)."""
    return [_judge(agent) for agent in _agents(principal).order_by("name", "agent_id")]


def get_agent(principal: Principal, agent_id: str) -> Agent:
    """One agent, as in `list_agents`. Raises NotFound."""
    try:
        return _judge(_agents(principal).get(agent_id=agent_id))
    except Agent.DoesNotExist:
        raise NotFound("agent_not_found", f"There is no agent {agent_id!r}.") from None


def _agents(principal: Principal) -> QuerySet[Agent]:
    open_leases = (
        access.rows(Lease, principal)
        .filter(agent_id=OuterRef("pk"), state=LeaseState.HELD)
        .order_by()
        .values("agent_id")
        .annotate(count=Count("pk"))
        .values("count")
    )
    return access.rows(Agent, principal).annotate(busy=Coalesce(Subquery(open_leases), 0), database_time=Now())


def _judge(agent: Agent) -> Agent:
    agent.online = agent.last_seen_at > agent.database_time - timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)
    return agent
