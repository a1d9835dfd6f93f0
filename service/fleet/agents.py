"""The registration of agents, and the components that they offer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import IntegrityError
from django.db.models.functions import Now

from service.core.errors import Conflict, Forbidden, InvalidInput, JsonValue, NotFound, ResourceExhausted
from service.core.lifecycle import LeaseState
from service.fleet import recipes
from service.fleet.models import Agent, Lease
from service.studies import listen_notify
from service.studies.specs import check_identifier, check_texts
from service.tenancy import access, audit
from service.tenancy.principal import Principal, Scope
from service.tenancy.statements import Select

MOST_SLOTS = 10_000
MOST_COMPONENTS = 200
# The most labels, and the most rules of the policy that an agent shows; the longest text of each.
MOST_TEXTS, LONGEST_TEXT = 100, 2000
NO_POLICY: Mapping[str, str] = {}
# A heartbeat writes "last seen" only when it is older than this: agents call far more often than people look.
_SEEN_EVERY = timedelta(seconds=2)
_ENROLLED = "agent"
_CLOCK = {"database_time": "statement_timestamp()"}
_select = Select(Agent, "agent_id = %s", extra=_CLOCK)
_select_all = Select(Agent, "TRUE", ending="ORDER BY name, agent_id", extra=_CLOCK)


@dataclass(frozen=True, slots=True)
class Registration:
    """The time for which a lease holds without a heartbeat, and the time between heartbeats."""

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
    policy: Mapping[str, str] = NO_POLICY,
    installable: Sequence[Mapping[str, str]] = (),
) -> Registration:
    """Register an agent, or update its registration. Its leases stay valid when it restarts.

    Raises InvalidInput, Conflict (`agent_online_elsewhere`), Forbidden (`another_agent`).
    """
    check_identifier("agent_id", agent_id, 100, required=True)
    check_identifier("name", name, 200, required=True)
    check_identifier("version", version, 64)
    check_identifier("session_id", session_id, 100)
    if not 1 <= slots <= MOST_SLOTS:
        raise InvalidInput("slots", slots, f"1 to {MOST_SLOTS}")
    check_texts("labels", labels, most=MOST_TEXTS, longest=LONGEST_TEXT)
    check_texts("policy", policy, most=MOST_TEXTS, longest=LONGEST_TEXT)
    _check_components(components)
    _check_installable(installable)
    values = {
        "name": name,
        "version": version,
        "slots": slots,
        "labels": dict(labels),
        "components": [{key: one for key, one in component.items() if key != "recipe"} for component in components],
        "session_id": session_id,
        "policy": dict(policy),
        "installable": [dict(one) for one in installable],
        "credential": _credential(principal),
    }
    if not _update(principal, agent_id, values):
        _expect_place(principal)
        try:
            with access.work(principal):
                added = access.add(principal, Agent(agent_id=agent_id, **values))
                _record(principal, added, None)
        except IntegrityError:
            # Another call of the same agent has registered it in the meantime.
            _update(principal, agent_id, values)
    recipes.keep(principal, {(str(one["name"]), str(one["digest"])): str(one.get("recipe", "")) for one in components})
    return Registration(settings.TRIMTAB_LEASE_SECONDS, settings.TRIMTAB_HEARTBEAT_SECONDS)


def find(principal: Principal, agent_id: str) -> Agent | None:
    """Return the agent of this id, with the database's time; None if it has not registered."""
    return next(iter(_select(principal, agent_id)), None)


def all_of(principal: Principal) -> list[Agent]:
    """Return all agents of the tenant by name, with the database's time."""
    return _select_all(principal)


def known(principal: Principal, agent_id: str) -> Agent:
    """Return the agent that calls.

    Raises NotFound (`unknown_agent`): it has to register and to call again; Forbidden (`another_agent`).
    """
    found = find(principal, agent_id)
    if found is None:
        raise NotFound(
            "unknown_agent",
            f"Agent {agent_id!r} is not registered. An agent that runs registers again by itself.",
            retryable=True,
        )
    _expect_own(principal, found)
    return found


def seen(principal: Principal, agent: Agent) -> None:
    """Update the time at which an agent was last seen."""
    if agent.last_seen_at < agent.database_time - _SEEN_EVERY:
        if not is_online(agent):
            listen_notify.notify_lists(principal, "agents")
        agent.last_seen_at = agent.database_time
        access.save(principal, agent, "last_seen_at")


def _update(principal: Principal, agent_id: str, values: Mapping[str, object]) -> bool:
    with access.work(principal):
        # The row is locked before it is read, so two calls at the same time run one after the other.
        access.rows(Agent, principal).select_for_update().filter(agent_id=agent_id).values_list("pk").first()
        agent = find(principal, agent_id)
        if agent is None:
            return False
        _expect_here(agent, str(values["session_id"]))
        if agent.credential == _ENROLLED or is_online(agent):
            _expect_own(principal, agent)
        before = _outline(agent)
        for name, value in values.items():
            setattr(agent, name, value)
        access.rows(Agent, principal).filter(pk=agent.pk).update(**values, last_seen_at=Now())
        _record(principal, agent, before)
    return True


def _record(principal: Principal, agent: Agent, before: Mapping[str, object] | None) -> None:
    detail = {"session": agent.session_id}
    audit.record(principal, "agent.register", f"agent/{agent.agent_id}", detail, before=before, after=_outline(agent))
    listen_notify.notify_lists(principal, "agents", "components")


def _expect_place(principal: Principal) -> None:
    """Refuse a new agent of a tenant that has as many as it may have. Raises ResourceExhausted."""
    most = settings.TRIMTAB_AGENTS_PER_TENANT
    if access.rows(Agent, principal).count() >= most:
        message = f"The tenant has {most} agents, which is the limit. Remove agents that no longer run."
        raise ResourceExhausted("too_many_agents", message, limit=most)


def _outline(agent: Agent) -> dict[str, object]:
    """Return the fields of an agent that the audit trail shows: components without their spaces."""
    components = {component["name"]: component["digest"] for component in agent.components}
    return {
        "name": agent.name,
        "version": agent.version,
        "slots": agent.slots,
        "labels": agent.labels,
        "components": components,
    }


def drain(principal: Principal, agent_id: str, draining: bool) -> Agent:
    """Stop or resume the assignment of trials to an agent. Its running trials go on. Raises NotFound."""
    with access.work(principal):
        access.rows(Agent, principal).select_for_update().filter(agent_id=agent_id).values_list("pk").first()
        agent = find(principal, agent_id)
        if agent is None:
            raise NotFound("agent_not_found", f"There is no agent {agent_id!r}.")
        if agent.draining != draining:
            agent.draining = draining
            access.save(principal, agent, "draining")
            audit.record(principal, "agent.drain", f"agent/{agent_id}", {"draining": draining})
            listen_notify.notify_lists(principal, "agents")
            listen_notify.notify_work(principal)
    return agent


def forget(principal: Principal, agent_id: str) -> None:
    """Remove an agent that no longer exists from the list. If it comes back, it registers again.

    Raises NotFound; Conflict (`agent_in_use`) while the agent is online or holds a lease.
    """
    with access.work(principal):
        access.rows(Agent, principal).select_for_update().filter(agent_id=agent_id).values_list("pk").first()
        agent = find(principal, agent_id)
        if agent is None:
            raise NotFound("agent_not_found", f"There is no agent {agent_id!r}.")
        held = access.rows(Lease, principal).filter(agent_id=agent.pk, state=LeaseState.HELD)
        if is_online(agent) or held.exists():
            raise Conflict("agent_in_use", f"Agent {agent.name!r} is online or has a trial. Stop it first.")
        access.rows(Agent, principal).filter(pk=agent.pk).delete()
        audit.record(principal, "agent.forget", f"agent/{agent_id}", {"name": agent.name})
        listen_notify.notify_lists(principal, "agents", "components")


def is_online(agent: Agent) -> bool:
    """Return whether an agent was seen within the time of a lease. `agent` carries the database's time."""
    return agent.last_seen_at > agent.database_time - timedelta(seconds=settings.TRIMTAB_LEASE_SECONDS)


def _expect_here(agent: Agent, session_id: str) -> None:
    """Refuse a second process with an agent's identity while the first one is online on another machine.

    On the same machine a new process succeeds the old one, because the agent itself prevents a second process there. A
    session is PLACE:PROCESS, and a session without a place may come from any machine.
    """
    before, now = agent.session_id.partition(":"), session_id.partition(":")
    if not before[1] or not now[1] or before[0] == now[0] or not is_online(agent):
        return
    seconds = (agent.database_time - agent.last_seen_at).total_seconds()
    raise Conflict(
        "agent_online_elsewhere",
        f"Agent {agent.name!r} with the identity {agent.agent_id} works on another machine, and was seen"
        f" {max(seconds, 0):.0f} s ago. Give each agent a state directory of its own; from a copied one, remove the"
        " file agent-id.",
    )


def _credential(principal: Principal) -> str:
    """Return what an agent's later calls are compared with. The credentials of an enrolled agent change."""
    return _ENROLLED if principal.is_enrolled else principal.credential


def _expect_own(principal: Principal, agent: Agent) -> None:
    """Refuse a token for agents in the name of an agent that has registered with another credential.

    Administrators may act for each agent, and an enrolled agent can only act for itself (identity/enrolment.py).
    """
    if principal.scopes == {Scope.AGENT} and agent.credential not in ("", _credential(principal)):
        raise Forbidden(
            "another_agent",
            f"Agent {agent.agent_id!r} has registered with another credential. Use that one, or give the agent a state"
            " directory of its own.",
        )


def _check_components(components: Sequence[Mapping[str, JsonValue]]) -> None:
    if len(components) > MOST_COMPONENTS:
        raise InvalidInput("components", f"{len(components)} components", f"at most {MOST_COMPONENTS}")
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
        _check_parameters(f"components[{index}].space", component.get("space", []))
        _check_finite(f"components[{index}]", component)


def _check_installable(installable: Sequence[Mapping[str, str]]) -> None:
    if len(installable) > MOST_COMPONENTS:
        raise InvalidInput("installable", f"{len(installable)} components", f"at most {MOST_COMPONENTS}")
    for index, one in enumerate(installable):
        check_identifier(f"installable[{index}].name", one["name"], 63, required=True)
        check_identifier(f"installable[{index}].version", one["version"], 64, required=True)
        check_identifier(f"installable[{index}].installed", one["installed"], 64)


def _check_parameters(field: str, space: JsonValue) -> None:
    names: set[JsonValue] = set()
    for index, parameter in enumerate(space if isinstance(space, list) else ()):
        name = parameter.get("name") if isinstance(parameter, Mapping) else None
        if not isinstance(name, str) or not name:
            raise InvalidInput(f"{field}[{index}].name", name, "a text that is not empty")
        if name in names:
            raise InvalidInput(f"{field}[{index}].name", name, "each parameter once")
        names.add(name)


def _check_finite(field: str, value: JsonValue | Mapping[str, JsonValue]) -> None:
    """Refuse a number that is not finite, which JSON does not have. Raises InvalidInput with its path."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(field, value, "a finite number")
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_finite(f"{field}.{key}", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_finite(f"{field}[{index}]", item)
