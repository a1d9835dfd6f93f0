"""Registration of agents, against a real PostgreSQL."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest
from django.db import connection
from django.db.models.functions import Now

from service.core.errors import InvalidInput, JsonValue, NotFound, TrimtabError
from service.fleet import agents, selectors
from service.fleet.models import Agent
from service.tenancy import access
from service.tenancy.principal import Principal, Role, Scope
from tests.factories.fleet import AGENT, acquire, create, refused, register


def test_an_agent_works_in_one_place_at_a_time(principal: Principal) -> None:
    register(principal, session_id="here:1")
    before = agents.known(principal, AGENT)
    refused("agent_online_elsewhere", lambda: register(principal, session_id="there:2", slots=9))
    after = agents.known(principal, AGENT)
    assert (after.session_id, after.slots, after.last_seen_at) == ("here:1", before.slots, before.last_seen_at)
    register(principal, session_id="here:3")  # it was started again
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(minutes=1))
    register(principal, session_id="there:2")  # and has moved
    refused("agent_online_elsewhere", lambda: register(principal, session_id="here:4"))


def test_one_of_two_agents_with_the_same_id_is_refused(principal: Principal) -> None:
    register(principal, session_id="gone:0")
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(minutes=1))

    def come(number: int) -> str:
        try:
            register(principal, session_id=f"place{number}:1")
        except TrimtabError as error:
            return error.code
        finally:
            connection.close()
        return ""

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(come, range(4)))
    assert answers == ["", *["agent_online_elsewhere"] * 3]


def test_a_token_for_agents_acts_for_its_own_agents_alone(principal: Principal) -> None:
    enrolled = replace(principal, role=Role.AGENT, scopes=frozenset({Scope.AGENT}), credential="agent:ab12cd34")
    token = replace(principal, scopes=frozenset({Scope.AGENT}), credential="token:trm_one")
    other = replace(token, credential="token:trm_two")
    register(enrolled, "machine", session_id="here:1")
    register(token, "script", session_id="here:2")
    # The credential of an enrolled agent changes; the token's agent may have been started again.
    agents.known(replace(enrolled, credential="agent:ef56ab78"), "machine")
    register(token, "script", session_id="here:3")
    agents.known(token, "script")
    agents.known(principal, "script")
    for caller, agent in ((token, "machine"), (other, "machine"), (other, "script")):
        refused("another_agent", partial(agents.known, caller, agent))
        refused("another_agent", partial(register, caller, agent, session_id="here:4"))
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(minutes=1))
    register(other, "script", session_id="here:5")  # the token was replaced
    agents.known(other, "script")
    refused("another_agent", lambda: register(token, "machine", session_id="here:6"))


def test_an_unknown_agent_must_register_first(principal: Principal) -> None:
    create(principal)
    with pytest.raises(NotFound) as caught:
        acquire(principal)
    assert caught.value.code == "unknown_agent"
    register(principal)
    register(principal)
    assert len(acquire(principal)) == 1
    (listed,) = selectors.list_agents(principal)
    assert (listed.agent_id, listed.busy, listed.online) == (AGENT, 1, True)
    refused("agent_not_found", lambda: selectors.get_agent(principal, "none"))
    with pytest.raises(InvalidInput):
        register(principal, slots=0)


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_component_with_a_number_that_json_does_not_have_is_refused(principal: Principal, number: float) -> None:
    space: list[JsonValue] = [{"name": "x", "type": "float", "min": 0.0, "max": number}]
    with pytest.raises(InvalidInput) as caught:
        register(principal, space=space)
    assert caught.value.data["field"] == "components[0].space[0].max"
