from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from django.db.models.functions import Now

from service.core.errors import InvalidInput
from service.fleet import agents, artifacts, grants, heartbeats, installations, runs, waiting
from service.fleet.models import Agent, Lease
from service.identity.principals import administrator
from service.studies.models import Artifact, Study
from service.tenancy import access, export, tenants
from tests.api.conftest import SPEC, Api

COMPONENT = {
    "name": "gcc-flags",
    "digest": "d1",
    "applications": ["small"],
    "description": "Flags.",
    "space": SPEC["space"]["parameters"],
    "metrics": ["seconds"],
}


def test_agents_are_listed_with_their_components(api: Api) -> None:
    assert api.ok("GET", "/agents") == {"agents": []}
    agents.register(
        administrator(), agent_id="a1", name="node-1", version="0.1", slots=2, labels={"cpu": "zen4"},
        components=[COMPONENT], session_id="x",
    )  # fmt: skip
    (agent,) = api.ok("GET", "/agents")["agents"]
    assert (agent["name"], agent["online"], agent["busy"], agent["slots"]) == ("node-1", True, 0, 2)
    assert (agent["labels"], agent["components"]) == ({"cpu": "zen4"}, ["gcc-flags"])
    assert api.ok("GET", "/agents/a1")["components"] == [COMPONENT]


def register(name: str, **changes: object) -> None:
    values: dict[str, Any] = {"version": "0.1", "slots": 2, "labels": {}, "components": [COMPONENT], "session_id": "x"}
    agents.register(administrator(), agent_id=name, name=name, **{**values, **changes})


def acquire(agent: str, count: int = 2) -> int:
    return len(grants.acquire(administrator(), agent_id=agent, count=count))


def test_a_draining_agent_takes_no_new_trials_and_keeps_its_running_ones(api: Api) -> None:
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
    assert grants.acquire(administrator(), agent_id="a1", count=1, held=[held(api)]) == []
    api.ok("PATCH", "/agents/a1", {"draining": False})
    assert len(grants.acquire(administrator(), agent_id="a1", count=1, held=[held(api)])) == 1
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


def test_a_trial_shows_its_commands_and_offers_its_files_for_download(api: Api) -> None:
    """With its command lines; its files are taken away, never shown, whatever they are called."""
    register("a1")
    api.ok("POST", "/studies", {"name": "s", "spec": {**SPEC, "execution": {"component": "gcc-flags"}}})
    principal = administrator()
    (grant,) = grants.acquire(principal, agent_id="a1", count=1)
    (lease,) = api.ok("GET", "/studies/s/trials/1")["leases"]
    assert (lease["invocation"], lease["run"]) == (None, 0)
    command = {"step": "command", "argv": ["sort", "-n"], "environment": {"LC_ALL": "C"}}
    invocation: dict[str, Any] = {"commands": [command], "folder": "/w", "host": "h", "script": ""}
    invocation["scheduler_options"] = []
    runs.report_started(principal, agent_id="a1", lease=grant.lease, node="n", run=1, invocation=invocation)
    (lease,) = api.ok("GET", "/studies/s/trials/1")["leases"]
    assert (lease["invocation"], lease["run"]) == (invocation, 1)
    runs.settle(principal, agent_id="a1", lease=grant.lease, outcome="completed", metrics={"seconds": 1.0})
    name, data = 'out/<b>"é.html', b"<script>alert(1)</script>"
    put: dict[str, Any] = {"agent_id": "a1", "lease": grant.lease, "left_out": ""}
    artifacts.put(principal, name=name, size=len(data), sha256=sha256(data).hexdigest(), data=data, **put)
    artifacts.put(principal, name="big", size=10**10, sha256="", data=b"", **{**put, "left_out": "too large"})
    big, small = api.ok("GET", "/studies/s/trials/1")["artifacts"]
    assert (big["name"], big["size"], big["left_out"], big["attempt"]) == ("big", 10**10, "too large", 1)
    assert (small["name"], small["size"], small["sha256"]) == (name, len(data), sha256(data).hexdigest())
    response = api.client.get(f"/api/v1/studies/s/trials/1/artifacts/{small['id']}")
    assert (response.status_code, response.content) == (200, data)
    assert response["Content-Type"] == "application/octet-stream"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Disposition"] == "attachment; filename*=utf-8''%3Cb%3E%22%C3%A9.html"
    assert "object-src 'none'" in response["Content-Security-Policy"]
    api.refused(404, "artifact_left_out", "GET", f"/studies/s/trials/1/artifacts/{big['id']}")
    api.refused(404, "artifact_not_found", "GET", f"/studies/s/trials/2/artifacts/{small['id']}")
    api.refused(404, "artifact_not_found", "GET", "/studies/s/trials/1/artifacts/999999")
    exported = b"".join(export.lines(principal, tenants.get("default")))
    assert json.loads(exported.splitlines()[-1])["rows"]["studies.artifact"] == 2
    api.ok("DELETE", "/studies/s")
    assert not access.rows(Artifact, principal).exists()


REDIS = {"name": "redis", "version": "2", "installed": "1"}


def ordered(api: Api) -> list[tuple[str, str, str]]:
    return [(one["action"], one["state"], one["code"]) for one in api.ok("GET", "/agents/a1")["orders"]]


def waiting_orders() -> list[Any]:
    renewal = heartbeats.renew(administrator(), agent_id="a1", leases=[])
    return [(name, one["action"], one["id"]) for name, one in renewal.orders.items()]


def test_an_agent_gets_an_order_until_its_first_answer(api: Api) -> None:
    register("a1", installable=[REDIS])
    path, install = "/agents/a1/components", {"component": "redis", "action": "install"}
    (asked,) = api.ok("POST", path, install)["orders"]
    assert (asked["component"], asked["state"], asked["actor"]) == ("redis", "waiting", administrator().actor)
    (order,) = waiting_orders()
    api.ok("POST", path, install)
    assert waiting_orders() == [order] == [("redis", "install", order[2])]
    api.refused(409, "order_pending", "POST", path, {"component": "redis", "action": "remove"})
    register("a1", installable=[REDIS])  # a new start of the agent keeps the order
    for code, message in (("packages_missing", "apt-get install redis-server"), ("", "")):
        installations.answer(administrator(), agent_id="a1", order=order[2], code=code, message=message)
    assert (ordered(api), waiting_orders()) == ([("install", "refused", "packages_missing")], [])
    api.ok("POST", path, {"component": "redis", "action": "remove"})
    ((_, action, second),) = waiting_orders()
    installations.answer(administrator(), agent_id="a1", order=second, code="", message="")
    assert (action, ordered(api)) == ("remove", [("remove", "done", "")])
    trail = [one["action"] for one in api.ok("GET", "/audit")["entries"] if one["action"].startswith("component.")]
    assert sorted(trail) == ["component.answer", "component.answer", "component.install", "component.remove"]


def test_orders_that_cannot_be_carried_out_are_refused(api: Api) -> None:
    register("a1", installable=[REDIS])
    path, install = "/agents/a1/components", {"component": "redis", "action": "install"}
    found = api.refused(409, "not_installable", "POST", path, {"component": "mariadb", "action": "install"})
    assert "Allowed: redis." in found["detail"]
    api.refused(404, "agent_not_found", "POST", "/agents/never/components", install)
    api.refused(400, "invalid_argument", "POST", path, {**install, "action": "run"})
    api.ok("POST", path, install)
    later = installations.PATIENCE + timedelta(seconds=1)
    agent = access.rows(Agent, administrator()).get()
    agent.orders["redis"]["asked_at"] = (datetime.now(UTC) - later).isoformat()
    access.save(administrator(), agent, "orders")
    assert (ordered(api), waiting_orders()) == ([("install", "unanswered", "")], [])
    access.rows(Agent, administrator()).update(last_seen_at=Now() - timedelta(days=1))
    api.refused(409, "agent_offline", "POST", path, install)
    with pytest.raises(InvalidInput, match="installable"):
        register("a1", installable=[REDIS] * 201)
