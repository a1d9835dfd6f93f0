from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from service.api import health, metrics
from service.tenancy import access
from tests.api.conftest import Api


def samples(client: Client) -> dict[tuple[str, ...], float]:
    metrics._latest.forget()
    answer = client.get("/metrics")
    assert answer.status_code == 200
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


@pytest.fixture(autouse=True)
def _forget() -> None:
    """No test gets the answer that another one has got."""
    health._readiness.forget()


def test_alive_and_ready(db: None) -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "status": "ok",
        "database": "ok",
        "migrations": "ok",
        "workers": "none: run `trimtab-service worker`",
    }


def test_ready_with_a_worker(db: None) -> None:
    access.across("note_worker", "worker-1", timedelta(seconds=60))
    assert Client().get("/readyz").json()["workers"] == "ok"


def test_not_ready_before_the_migrations(
    db: None, owner: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_migrated", False)
    owner("UPDATE django_migrations SET app = 'no-fleet' WHERE app = 'fleet'")
    try:
        answer = Client().get("/readyz")
    finally:
        owner("UPDATE django_migrations SET app = 'fleet' WHERE app = 'no-fleet'")
    assert answer.status_code == 503
    assert "trimtab-service migrate" in answer.json()["migrations"]
    assert Client().get("/healthz").status_code == 200


def test_metrics_count_studies_trials_and_requests(api: Api, study: Callable[..., str]) -> None:
    study("one")
    study("two")
    api.ok("PATCH", "/studies/two", {"state": "PAUSED"})
    api.ok("POST", "/studies/one/suggestions", {"count": 3})
    api.ok("POST", "/studies/one/trials/1/complete", {"metrics": {"seconds": 1}})
    route = "api/v1/studies/<str:name>/suggestions"
    found = samples(Client())
    assert found["trimtab_studies", "active"] == found["trimtab_studies", "paused"] == 1
    assert (found["trimtab_trials", "active"], found["trimtab_trials", "finished"]) == (2, 1)
    assert found["trimtab_operations", "pending"] == 0
    assert found["trimtab_agents", "online"] == 0
    assert (found["trimtab_workers", "busy"], found["trimtab_workers", "idle"]) == (0, 0)
    assert found["trimtab_oldest_operation_seconds",] == 0
    before = found["trimtab_http_request_seconds_count", "POST", route, "200"]
    api.ok("POST", "/studies/one/suggestions", {})
    assert samples(Client())["trimtab_http_request_seconds_count", "POST", route, "200"] == before + 1


def test_metrics_cost_a_fixed_number_of_queries(
    api: Api, study: Callable[..., str], django_assert_num_queries: Callable[..., object]
) -> None:
    for index in range(5):
        study(f"s{index}")
    with django_assert_num_queries(5):  # type: ignore[attr-defined]
        samples(Client())


def test_answers_without_a_token_are_remembered(
    db: None, django_assert_num_queries: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (health._readiness, metrics._latest):  # as if no time passed, which a busy machine cannot promise
        monkeypatch.setattr(value, "_seconds", math.inf)
    for path in ("/readyz", "/metrics"):
        first = Client().get(path)
        with django_assert_num_queries(0):
            assert Client().get(path).content == first.content
