"""The check of a call's permission before its method runs."""

from dataclasses import replace

import pytest

from service._gen import agent_pb2
from service.core.errors import Forbidden
from service.rpc import interceptors
from service.rpc.servicers.agent import AgentServicer
from service.tenancy.principal import Principal, Role, Scope


def permit(caller: Principal, agent_id: str) -> None:
    interceptors._principal.set(caller)
    interceptors._permit(
        interceptors.declared_for(AgentServicer.Register), agent_pb2.RegisterRequest(agent_id=agent_id)
    )


def test_an_enrolled_agent_calls_only_in_its_own_name() -> None:
    token = Principal(tenant_id=1, actor="someone", role=Role.AGENT, scopes=frozenset({Scope.AGENT}))
    enrolled = replace(token, actor="agent/mine", credential="agent:ab12cd34")
    permit(enrolled, "mine")
    permit(token, "any")
    with pytest.raises(Forbidden) as caught:
        permit(enrolled, "other")
    assert caught.value.code == "another_agent"
