from __future__ import annotations

from service.fleet import agents
from service.identity.principals import administrator
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
