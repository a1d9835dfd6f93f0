"""Orders to agents to install, update or remove a component that ships with them.

An order names a component and carries no code: the agent has the files, and its policy says which components people may
install. The row of the agent keeps the last order of each component. The agent receives an open order in the reply to a
heartbeat until it has answered, so a lost message costs only time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import uuid4

from service.core.errors import Conflict, InvalidInput, NotFound, shorten
from service.fleet import agents
from service.fleet.leases import plain
from service.fleet.models import Agent
from service.studies import listen_notify
from service.tenancy import access, audit
from service.tenancy.principal import Principal

INSTALL, REMOVE = ACTIONS = ("install", "remove")
# How long an agent receives an order.
PATIENCE = timedelta(minutes=10)
_LONGEST_CODE, _LONGEST_MESSAGE = 64, 2000


class State(StrEnum):
    """The state of an order."""

    WAITING = "waiting"
    DONE = "done"
    REFUSED = "refused"
    UNANSWERED = "unanswered"


def order(principal: Principal, agent_id: str, *, component: str, action: str) -> None:
    """Ask an agent to install or to remove a component. The same open order again changes nothing.

    Raises NotFound; Conflict (`not_installable`, `agent_offline`, `order_pending`).
    """
    with access.work(principal):
        agent = _locked(principal, agent_id)
        if agent is None:
            raise NotFound("agent_not_found", f"There is no agent {agent_id!r}.")
        names = [one["name"] for one in agent.installable]
        if component not in names:
            allowed = shorten(", ".join(names), 500) or "none: its policy has no key 'install'"
            message = f"Component {component!r} may not be installed on agent {agent.name!r}. Allowed: {allowed}."
            raise Conflict("not_installable", message)
        if not agents.is_online(agent):
            raise Conflict("agent_offline", f"Agent {agent.name!r} is offline. Start it, and try again.")
        pending = agent.orders.get(component)
        if pending is not None and _state(agent, pending) == State.WAITING:
            if pending["action"] == action:
                return
            message = f"Agent {agent.name!r} still carries out another order of {component!r}. Wait for its answer."
            raise Conflict("order_pending", message)
        new = {"id": str(uuid4()), "action": action, "state": State.WAITING, "code": "", "message": ""}
        new |= {"actor": principal.actor, "asked_at": agent.database_time.isoformat()}
        agent.orders = {name: one for name, one in agent.orders.items() if name in names} | {component: new}
        access.save(principal, agent, "orders")
        audit.record(principal, f"component.{action}", f"agent/{agent_id}", {"component": component})
        listen_notify.notify_agents(principal)
        listen_notify.notify_lists(principal, "agents")


def waiting(agent: Agent) -> Mapping[str, Mapping[str, Any]]:
    """Return the orders that an agent has not answered, by component."""
    return {name: one for name, one in agent.orders.items() if _state(agent, one) == State.WAITING}


def shown(agent: Agent) -> Sequence[Mapping[str, Any]]:
    """Return the last order of each component for people."""
    return [{**one, "component": name, "state": _state(agent, one)} for name, one in sorted(agent.orders.items())]


def answer(principal: Principal, *, agent_id: str, order: str, code: str, message: str) -> None:
    """Store that an order is carried out, or with a code why it is not. Only the first answer counts.

    Raises NotFound (`unknown_agent`), InvalidInput.
    """
    if len(code) > _LONGEST_CODE or bool(code) != bool(message):
        raise InvalidInput(
            "code", shorten(code, 100), f"at most {_LONGEST_CODE} characters, with a message, or neither"
        )
    agents.known(principal, agent_id)
    with access.work(principal):
        agent = _locked(principal, agent_id)
        found = next((name for name, one in agent.orders.items() if one["id"] == order), None) if agent else None
        if agent is None or found is None or agent.orders[found]["state"] != State.WAITING:
            return
        done = {
            **agent.orders[found],
            "state": State.REFUSED if code else State.DONE,
            "code": plain(code, _LONGEST_CODE),
            "message": plain(message, _LONGEST_MESSAGE),
        }
        agent.orders = {**agent.orders, found: done}
        access.save(principal, agent, "orders")
        detail = {"component": found, "action": done["action"], "code": done["code"], "message": done["message"]}
        audit.record(principal, "component.answer", f"agent/{agent_id}", detail)
        listen_notify.notify_lists(principal, "agents", "components")


def _locked(principal: Principal, agent_id: str) -> Agent | None:
    access.rows(Agent, principal).select_for_update().filter(agent_id=agent_id).values_list("pk").first()
    return agents.find(principal, agent_id)


def _state(agent: Agent, one: Mapping[str, Any]) -> State:
    if one["state"] == State.WAITING and datetime.fromisoformat(one["asked_at"]) < agent.database_time - PATIENCE:
        return State.UNANSWERED
    return State(one["state"])
