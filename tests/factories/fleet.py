"""Agents, studies on agents and leases, for tests of the fleet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now

from service.core.errors import TrimtabError
from service.fleet import agents, grants, leases, runs
from service.fleet.grants import Grant
from service.fleet.models import Lease
from service.planning.create import create_study
from service.studies import selectors as study_selectors
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from tests.factories.domain import make_component, make_execution, make_spec, study_name

AGENT = "agent-1"


def register(
    principal: Principal, agent_id: str = AGENT, slots: int = 4, session_id: str = "", **component: Any
) -> None:
    agents.register(
        principal,
        agent_id=agent_id,
        name=agent_id,
        version="1",
        slots=slots,
        labels={},
        components=[make_component(**component)],
        session_id=session_id or uuid4().hex,
    )


def create(principal: Principal, budget: dict[str, Any] | None = None, **execution: Any) -> str:
    spec = make_spec(execution=make_execution(**execution), budget=budget or {})
    return create_study(principal, study_name(), spec).name


def acquire(
    principal: Principal, count: int = 1, agent_id: str = AGENT, held: list[Grant] | None = None
) -> list[Grant]:
    return grants.acquire(principal, agent_id=agent_id, count=count, held=[one.lease for one in held or []])


def settle(principal: Principal, grant: Grant, outcome: Any = "completed", seconds: float = 1.0, **more: Any) -> None:
    metrics = {"seconds": seconds} if outcome == "completed" else {}
    runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome=outcome, metrics=metrics, **more)


def trial(principal: Principal, study: str, number: int) -> Trial:
    return study_selectors.get_trial(principal, study, number).trial


def study(principal: Principal, name: str) -> Study:
    return study_selectors.get_study(principal, name)


def refused(code: str, call: Callable[[], object]) -> None:
    with pytest.raises(TrimtabError) as caught:
        call()
    assert caught.value.code == code, caught.value


def expire(principal: Principal) -> None:
    access.rows(Lease, principal).filter(state="HELD").update(expires_at=Now() - timedelta(seconds=1))
    leases.expire(leases.overdue())
