"""A tenant's audit trail, quota and export; an operator's tenants."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import timedelta

import httpx
import pytest
from django.test import Client

from service.api.v1 import tenancy
from service.studies.models import Operation
from service.tenancy import access
from service.tenancy.export import in_order
from service.tenancy.principal import Principal
from service.tenancy.protection import tables
from service.trials import ask
from service.trials.quotas import Meter
from tests.api.conftest import SPEC, Api, Json
from tests.factories.patience import PATIENCE
from tests.factories.service import EmbeddedService


def lines(api: Api, path: str) -> list[Json]:
    answer = api.client.get(f"/api/v1{path}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/x-ndjson"
    assert answer["Cache-Control"] == "no-store"
    return [json.loads(line) for line in b"".join(answer).splitlines()]


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams that are made in this thread, which alone sees what the test's transaction holds."""

    monkeypatch.setattr(tenancy, "stream", iter)


def test_the_audit_trail_shows_actor_credential_action_and_changed_values(api: Api, study: Callable[..., str]) -> None:
    study("s")
    (trial,) = api.ok("POST", "/studies/s/suggestions", {})["trials"]
    api.ok("POST", f"/studies/s/trials/{trial['number']}/complete", {"metrics": {"seconds": 2.5}})
    api.ok("PATCH", "/studies/s", {"state": "PAUSED", "reason": "lunch"})
    api.ok("DELETE", "/studies/s")
    entries = api.ok("GET", "/audit")["entries"]
    assert [entry["action"] for entry in entries] == [
        "study.delete",
        "study.update_state",
        "trial.complete",
        "study.suggest",
        "study.create",
    ]
    deleted, paused, completed, suggested, created = entries
    for entry in entries:
        assert (entry["actor"], entry["credential"]) == ("administrator", "administrator-token")
    assert created["before"] is None
    assert created["after"]["study"]["spec"]["seed"] == SPEC["seed"]
    assert suggested["after"] == {"trial/1": {"state": "ACTIVE"}}
    assert completed["before"] == {"trial/1": {"state": "ACTIVE"}}
    assert completed["after"] == {"trial/1": {"state": "COMPLETED", "metrics": {"seconds": 2.5}}}
    assert (paused["before"], paused["after"]) == (
        {"study": {"state": "ACTIVE"}},
        {"study": {"state": "PAUSED", "reason": "lunch"}},
    )
    assert deleted["before"]["study"]["trials"] == 1
    assert deleted["after"] is None


def test_the_audit_trail_can_be_searched_and_paged(api: Api, study: Callable[..., str]) -> None:
    for name in ("one", "two"):
        study(name)
        api.ok("POST", f"/studies/{name}/suggestions", {})
    assert len(api.ok("GET", "/audit?target=study/one")["entries"]) == 2
    assert len(api.ok("GET", "/audit?action=study.sugg")["entries"]) == 2
    assert api.ok("GET", "/audit?actor=nobody")["entries"] == []
    assert api.ok("GET", "/audit?since=2100-01-01T00:00:00Z")["entries"] == []
    assert len(api.ok("GET", "/audit?until=2100-01-01T00:00:00Z")["entries"]) == 4
    first = api.ok("GET", "/audit?page_size=3")
    second = api.ok("GET", f"/audit?page_size=3&page_token={first['next_page_token']}")
    assert [len(first["entries"]), len(second["entries"]), second["next_page_token"]] == [3, 1, ""]
    api.refused(400, "invalid_argument", "GET", "/audit?page_size=1001")
    api.refused(400, "invalid_argument", "GET", "/audit?page_token=x")
    api.refused(400, "invalid_argument", "GET", "/audit?since=yesterday")


def test_the_audit_trail_can_be_exported(api: Api, study: Callable[..., str], streamed: None) -> None:
    study("s")
    api.ok("POST", "/studies/s/suggestions", {})
    exported = lines(api, "/audit/export")
    assert [entry["action"] for entry in exported] == ["study.create", "study.suggest", "audit.export"]
    assert exported == api.ok("GET", "/audit")["entries"][::-1]


def test_the_quota_shows_limits_and_use(api: Api, study: Callable[..., str]) -> None:
    study("s")
    api.ok("POST", "/studies/s/suggestions", {"count": 3})
    quota = api.ok("GET", "/quota")
    assert quota["limits"]["studies"] == 10_000
    assert (quota["used"]["studies"], quota["used"]["active_trials"], quota["used"]["stored_trials"]) == (1, 3, 3)


def test_a_refusal_says_when_to_ask_again(api: Api, study: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    study("s")
    monkeypatch.setattr(ask, "meter", Meter())
    api.ok("PATCH", "/tenants/default", {"limits": {"suggestions_per_minute": 1}})
    problem = api.refused(429, "rate_limited", "POST", "/studies/s/suggestions", {"count": 2})
    answer = api.client.post("/api/v1/studies/s/suggestions", {"count": 2}, content_type="application/json")
    assert 1 <= int(answer["Retry-After"]) <= 61
    assert problem["data"]["limit"] == 1


def test_a_tenant_is_exported_whole(api: Api, study: Callable[..., str], streamed: None) -> None:
    study("s")
    asked = api.ok("POST", "/studies/s/suggestions", {"count": 2})
    api.ok("POST", "/studies/s/trials/1/measurements", {"step": 1, "metrics": {"seconds": 2.0}})
    api.ok("POST", "/studies/s/trials/1/complete", {"metrics": {"seconds": 1.0}})
    header, *rows, end = lines(api, "/tenant/export")
    assert (header["format"], header["version"], header["tenant"]) == ("trimtab-tenant", 1, "default")
    by_table: dict[str, list[Json]] = {}
    for row in rows:
        by_table.setdefault(row["table"], []).append(row["row"])
    assert end["end"] is True
    assert set(end["rows"]) == {model._meta.label_lower for model in tables().values()}
    assert {table: count for table, count in end["rows"].items() if count} == {
        table: len(found) for table, found in by_table.items()
    }
    (exported,) = by_table["studies.study"]
    assert exported["name"] == "s"
    assert [trial["params"] for trial in by_table["studies.trial"]] == [one["params"] for one in asked["trials"]]
    assert len(by_table["studies.measurement"]) == 1
    assert [entry["action"] for entry in by_table["tenancy.auditentry"]][-1] == "tenant.export"
    assert len(by_table["tenancy.auditentry"]) == 5
    # What refers to a row comes after it.
    order = list(dict.fromkeys(row["table"] for row in rows))
    assert order.index("studies.study") < order.index("studies.trial") < order.index("studies.measurement")
    assert len(in_order()) == len(tables())


def test_no_secret_is_exported(api: Api, streamed: None) -> None:
    from service.identity import login

    login.create_code()
    codes = [row["row"] for row in lines(api, "/tenant/export") if row.get("table") == "identity.logincode"]
    assert codes
    assert all("digest" not in code for code in codes)


def test_an_operator_creates_limits_and_disables_tenants(api: Api) -> None:
    created = api.ok("POST", "/tenants", {"slug": "acme", "name": "ACME"})
    assert (created["slug"], created["name"], created["disabled_at"]) == ("acme", "ACME", None)
    assert set(created["limits"].values()) == {None}
    api.refused(409, "tenant_exists", "POST", "/tenants", {"slug": "acme"})
    for slug in ("", "A", "-a", "a-", "ä", "a" * 64, "a b"):
        api.refused(400, "invalid_argument", "POST", "/tenants", {"slug": slug})
    changed = api.ok("PATCH", "/tenants/acme", {"limits": {"studies": 5}, "disabled": True})
    assert changed["limits"]["studies"] == 5
    assert changed["disabled_at"] is not None
    changed = api.ok("PATCH", "/tenants/acme", {"limits": {"studies": None}, "disabled": False, "name": "New"})
    assert (changed["limits"]["studies"], changed["disabled_at"], changed["name"]) == (None, None, "New")
    assert api.ok("GET", "/tenants/acme") == changed
    assert [one["slug"] for one in api.ok("GET", "/tenants")["tenants"]] == ["acme", "default"]
    api.refused(404, "tenant_not_found", "PATCH", "/tenants/none", {"name": "x"})
    api.refused(400, "invalid_argument", "PATCH", "/tenants/acme", {"limits": {"studies": -1}})
    api.refused(400, "invalid_argument", "PATCH", "/tenants/acme", {"limits": {"cores": 1}})
    # It is written down in the tenant that it happened to.
    assert api.ok("GET", "/audit?target=tenant/")["entries"] == []


def test_a_disabled_tenant_refuses_requests(api: Api) -> None:
    api.ok("GET", "/studies")
    api.ok("PATCH", "/tenants/default", {"disabled": True})
    api.refused(403, "tenant_disabled", "GET", "/studies")
    assert access.across("count_operations") == []
    assert Client().get("/healthz").status_code == 200


def test_a_stream_comes_whole_from_a_real_service(embedded_service: EmbeddedService) -> None:
    headers = {"Authorization": f"Bearer {embedded_service.token}"}
    with httpx.Client(base_url=f"{embedded_service.http_url}/api/v1", headers=headers, timeout=PATIENCE) as client:
        name = f"export-{uuid.uuid4().hex[:8]}"
        client.post("/studies", json={"name": name, "spec": SPEC}).raise_for_status()
        # More rows than are read at once.
        for _ in range(2):
            client.post(f"/studies/{name}/suggestions", json={"count": 400}).raise_for_status()
        with client.stream("GET", "/tenant/export") as response:
            rows = [json.loads(line) for line in response.iter_lines()]
        with client.stream("GET", "/audit/export", params={"target": f"study/{name}"}) as response:
            entries = [json.loads(line) for line in response.iter_lines()]
    assert rows[-1]["end"] is True
    assert rows[-1]["rows"]["studies.trial"] >= 800
    assert sum(row.get("table") == "studies.trial" for row in rows) == rows[-1]["rows"]["studies.trial"]
    assert [entry["action"] for entry in entries] == ["study.create", "study.suggest", "study.suggest"]
    assert entries[0]["address"] in ("127.0.0.1", "")


def test_an_operator_sees_waiting_operations_and_busy_workers(api: Api) -> None:
    assert api.ok("GET", "/queue") == {"workers": [], "tenants": []}
    spec = {**SPEC, "algorithm": {"name": "gp", "options": {"initial": 1}}}
    execution = {"component": "c", "application": "a", "parallelism": 2}
    api.ok("POST", "/studies", {"name": "costly", "spec": spec})
    api.ok("POST", "/studies", {"name": "agents", "spec": {**SPEC, "execution": execution}})
    # Nobody empties the queue here: what a worker is to compute goes on waiting.
    for _ in range(3):
        api.ok("POST", "/studies/costly/suggestions", {"count": 2, "client_id": uuid.uuid4().hex})
    pending = access.rows(Operation, Principal.system(1)).filter(state="PENDING")
    waiting = pending.count()
    assert waiting >= 1
    (depth,) = api.ok("GET", "/queue")["tenants"]
    assert (depth["tenant"], depth["waiting"], depth["computing"]) == ("default", waiting, 0)
    assert depth["oldest_seconds"] >= 0
    assert depth["trials_waiting"] == 3
    # One that beats is alive, and busy while it computes.
    access.across("note_worker", "w", timedelta(seconds=60))
    assert [(one["name"], one["busy"]) for one in api.ok("GET", "/queue")["workers"]] == [("w", False)]
    pending.filter(pk=pending.values_list("pk", flat=True)[0]).update(state="RUNNING", worker="w")
    queue = api.ok("GET", "/queue")
    assert [(one["name"], one["busy"]) for one in queue["workers"]] == [("w", True)]
    assert (queue["tenants"][0]["waiting"], queue["tenants"][0]["computing"]) == (waiting - 1, 1)
