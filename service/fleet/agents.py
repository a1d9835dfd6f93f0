"""Agents: who they are and what they offer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError
from django.db.models.functions import Now

from service.core.errors import InvalidInput, JsonValue, NotFound
from service.fleet.models import Agent
from service.studies.specs import check_identifier
from service.tenancy import access, audit
from service.tenancy.principal import Principal
from service.tenancy.statements import Select

MOST_SLOTS = 10_000
# How stale "last seen" may be before a heartbeat writes it: an agent calls far more often than anyone looks.
_SEEN_EVERY = timedelta(seconds=2)
_CLOCK = {"database_time": "statement_timestamp()"}
_select = Select(Agent, "agent_id = %s", extra=_CLOCK)
_select_all = Select(Agent, "TRUE", ending="ORDER BY name, agent_id", extra=_CLOCK)


@dataclass(frozen=True, slots=True)
class Registration:
    """How long a lease holds without a heartbeat, and how often to send one."""

    lease_seconds: float
    heartbeat_seconds: float


def register(
    principal: Principal,
    *,
    agent_id: str,
    name: str,
    version: str,
    slots: int,
    labels: Mapping[str, str],
    components: Sequence[Mapping[str, JsonValue]],
    session_id: str,
) -> Registration:
    """Make an agent known, or bring what is known of it up to date. Its leases outlive its restart.

    Raises InvalidInput.
    """
    check_identifier("agent_id", agent_id, 100, required=True)
    check_identifier("name", name, 200, required=True)
    check_identifier("version", version, 64)
    check_identifier("session_id", session_id, 100)
    if not 1 <= slots <= MOST_SLOTS:
        raise InvalidInput("slots", slots, f"1 to {MOST_SLOTS}")
    _check_components(components)
    values = {
        "name": name,
        "version": version,
        "slots": slots,
        "labels": dict(labels),
        "components": [dict(component) for component in components],
        "session_id": session_id,
    }
    if not _update(principal, agent_id, values):
        try:
            with access.work(principal):
                access.add(principal, Agent(agent_id=agent_id, **values))
                audit.record(principal, "agent.register", f"agent/{agent_id}", {"session": session_id})
        except IntegrityError:
            # The same agent sent it twice and the other call was faster.
            _update(principal, agent_id, values)
    return Registration(settings.TRIMTAB_LEASE_SECONDS, settings.TRIMTAB_HEARTBEAT_SECONDS)


def find(principal: Principal, agent_id: str) -> Agent | None:
    """The agent of this id, if it has registered, with the database's time."""
    return next(iter(_select(principal, agent_id)), None)


def all_of(principal: Principal) -> list[Agent]:
    """All agents of the tenant by name, with the database's time."""
    return _select_all(principal)


def known(principal: Principal, agent_id: str) -> Agent:
    """The agent that calls. Raises NotFound (`unknown_agent`): it is to register, and to call again."""
    found = find(principal, agent_id)
    if found is None:
        raise NotFound("unknown_agent", f"Agent {agent_id!r} is not registered.", retryable=True)
    return found


def seen(principal: Principal, agent: Agent) -> None:
    """Note that an agent was heard of."""
    if agent.last_seen_at < agent.database_time - _SEEN_EVERY:
        agent.last_seen_at = agent.database_time
        access.save(principal, agent, "last_seen_at")


def _update(principal: Principal, agent_id: str, values: Mapping[str, object]) -> bool:
    with access.work(principal):
        updated = access.rows(Agent, principal).filter(agent_id=agent_id).update(**values, last_seen_at=Now())
        if updated:
            audit.record(principal, "agent.register", f"agent/{agent_id}", {"session": values["session_id"]})
    return bool(updated)


def _check_components(components: Sequence[Mapping[str, JsonValue]]) -> None:
    names: set[str] = set()
    for index, component in enumerate(components):
        for key in ("name", "digest"):
            value = component.get(key)
            if not isinstance(value, str) or not value:
                raise InvalidInput(f"components[{index}].{key}", value, "a text that is not empty")
        name = str(component["name"])
        if name in names:
            raise InvalidInput(f"components[{index}].name", name, "each component once")
        names.add(name)
