from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from service.fleet import agents, leases, waiting
from service.fleet.models import Agent, Lease
from service.identity.principals import administrator
from service.studies.models import Study
from service.tenancy import access
from tests.api.conftest import SPEC, Api


def test_agents_are_listed_with_their_components(api: Api) -> None:
    assert api.ok("GET", "/agents") == {"agents": []}
    component = {
        "name": "gcc-flags",
        "digest": "d1",
        "applications": ["small"],
        "description": "Flags.",
        "space": SPEC["space"]["parameters"],
        "metrics": ["seconds"],
    }
    agents.register(
        administrator(), agent_id="a1", name="node-1", version="0.1", slots=2, labels={"cpu": "zen4"},
        components=[component], session_id="x",
    )  # fmt: skip
    (agent,) = api.ok("GET", "/agents")["agents"]
    assert (agent["name"], agent["online"], agent["busy"], agent["slots"]) == ("node-1", True, 0, 2)
    assert (agent["labels"], agent["components"]) == ({"cpu": "zen4"}, ["gcc-flags"])
    assert api.ok("GET", "/agents/a1")["components"] == [component]


def register(name: str, **changes: object) -> None:
    component = {
        "name": "gcc-flags",
        "digest": "d1",
        "applications": ["small"],
        "description": "Flags.",
        "space": SPEC["space"]["parameters"],
        "metrics": ["seconds"],
    }
    values: dict[str, Any] = {"version": "0.1", "slots": 2, "labels": {}, "components": [component], "session_id": "x"}
    agents.register(administrator(), agent_id=name, name=name, **{**values, **changes})


def acquire(agent: str, count: int = 2) -> int:
    return len(leases.acquire(administrator(), agent_id=agent, count=count))


def test_an_agent_that_is_drained_takes_no_more_trials_and_goes_on_with_those_it_has(api: Api) -> None:
    register("a1", policy={"limits.trials": "at most 2"})
    spec = {**SPEC, "execution": {"component": "gcc-flags", "parallelism": 3}}
    api.ok("POST", "/studies", {"name": "s", "spec": spec})
    assert acquire("a1", 1) == 1
    drained = api.ok("PATCH", "/agents/a1", {"draining": True})
    assert (drained["draining"], drained["busy"], drained["policy"]) == (True, 1, {"limits.trials": "at most 2"})
    (running,) = api.ok("GET", "/agents")["agents"][0]["running"]
    assert (running["study"], running["number"], running["attempt"], running["started_at"]) == ("s", 1, 1, None)
    # Its heartbeat and its next start change nothing of it.
    register("a1")
    assert leases.acquire(administrator(), agent_id="a1", count=1, held=[held(api)]) == []
    api.ok("PATCH", "/agents/a1", {"draining": False})
    assert len(leases.acquire(administrator(), agent_id="a1", count=1, held=[held(api)])) == 1
    api.refused(404, "agent_not_found", "PATCH", "/agents/never", {"draining": True})
    api.refused(400, "invalid_argument", "PATCH", "/agents/a1", {"draining": "perhaps"})


def held(api: Api) -> str:
    lease = access.rows(Lease, administrator()).get(trial__number=1)
    return str(lease.id)


def test_only_an_agent_that_is_gone_is_forgotten(api: Api) -> None:
    register("a1")
    api.refused(409, "agent_in_use", "DELETE", "/agents/a1")
    access.rows(Agent, administrator()).update(last_seen_at=datetime(2020, 1, 1, tzinfo=UTC))
    api.ok("DELETE", "/agents/a1")
    api.refused(404, "agent_not_found", "DELETE", "/agents/a1")
    assert api.ok("GET", "/agents") == {"agents": []}


def test_trials_that_wait_for_an_agent_that_is_drained_say_so(api: Api) -> None:
    register("a1")
    register("a2")
    found = agents.all_of(administrator())
    study = Study(component="gcc-flags", digest="", application="")
    found[0].draining = True
    assert waiting.why(study, found) == ""
    found[1].draining = True
    assert "drained" in waiting.why(study, found)
