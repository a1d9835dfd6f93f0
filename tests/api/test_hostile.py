"""Requests of people who mean harm: nesting, methods, halves of characters, formulas, and many rows."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from prometheus_client import REGISTRY
from rest_framework import serializers

from service.api.v1.study_export import _safe
from service.fleet import agents
from service.identity import enrolment, principals
from service.identity.principals import administrator
from tests.api.conftest import Api
from tests.api.test_agents import register
from tests.api.test_errors import sign_in
from trimtab.cli import csv_cells


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"[" * 900 + b"]" * 900, b'{"a":' * 65 + b"1" + b"}" * 65, b'{"name": "\\ud800"}']
)
def test_bodies_that_nothing_could_store_are_malformed(api: Api, body: bytes) -> None:
    api.refused(400, "malformed_request", "POST", "/studies", body)


def test_a_refusal_of_a_large_value_is_quick(api: Api) -> None:
    body = b"[" + b"[]," * 340_000 + b"[]]"
    started = time.thread_time()
    problem = api.refused(400, "invalid_argument", "POST", "/studies", body)
    assert time.thread_time() - started < 5
    assert len(problem["detail"]) < 1000


def test_unknown_methods_are_refused_and_not_counted_by_name(api: Api) -> None:
    for method in ("STUDY", "BODY", "PRINCIPAL", "X" * 1000):
        api.refused(405, "method_not_allowed", method, "/studies")
    counted = [
        sample.labels["method"]
        for family in REGISTRY.collect()
        if family.name == "trimtab_http_request_seconds"
        for sample in family.samples
    ]
    assert "other" in counted
    assert {"STUDY", "BODY", "X" * 1000}.isdisjoint(counted)


def test_answers_are_not_stored(api: Api) -> None:
    answer = api.client.get("/api/v1/studies")
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("text", ["=1", " =1", "\uff1d1", "\u00a0+1", "-x", "\na", "\ta"])
def test_no_text_of_a_table_is_a_formula(text: str) -> None:
    assert _safe(text) == f"'{text}"
    assert csv_cells.safe(text) == f"'{text}"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("\n=1", "'\n'=1"),
        ("\t@x", "'\t'@x"),
        ("a;=1", "a;'=1"),
        ("a; -1", "a;' -1"),
        ("a\n@x", "a\n'@x"),
        ("a\r\n\t\uff0b1;=2", "a\r\n\t'\uff0b1;'=2"),
        ("=1;" + "\n" * 100_000, "'=1;" + "\n" * 100_000),
    ],
)
def test_no_part_of_a_text_is_a_formula(text: str, cell: str) -> None:
    """A spreadsheet that separates cells by semicolons takes the parts of this text for cells."""
    assert _safe(text) == cell
    assert csv_cells.safe(text) == cell


@pytest.mark.parametrize("value", ["a=1", "", " text", "a; b", "a\nb", 5, None, -2.5])
def test_other_values_stay(value: object) -> None:
    assert _safe(value) == value
    assert csv_cells.safe(value) == value


def test_a_signed_out_cookie_is_refused(db: None) -> None:
    browser = sign_in()
    kept = browser.cookies["trimtab_session"].value
    other = sign_in()
    assert browser.delete("/api/v1/session", headers={"X-Trimtab-Console": "1"}).status_code == 204
    browser.cookies["trimtab_session"] = kept
    answer = browser.get("/api/v1/studies")
    assert (answer.status_code, answer.json()["code"]) == (401, "signed_out")
    assert other.get("/api/v1/studies").status_code == 200


def test_rows_that_no_quota_counts_have_bounds(api: Api, settings: Any) -> None:
    settings.TRIMTAB_AGENTS_PER_TENANT = settings.TRIMTAB_TOKENS_PER_TENANT = settings.TRIMTAB_ENROLMENTS_PER_TENANT = 1
    register("a1")
    register("a1", slots=3)
    enrolment.create(administrator())
    api.ok("POST", "/tokens", {"name": "t", "scopes": ["read"]})
    with pytest.raises(Exception, match="limit") as caught:
        register("a2")
    assert caught.value.code == "too_many_agents"  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="limit") as caught:
        enrolment.create(administrator())
    assert caught.value.code == "too_many_enrolments"  # type: ignore[attr-defined]
    api.refused(429, "too_many_tokens", "POST", "/tokens", {"name": "u", "scopes": ["read"]})


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("labels", {"labels": {str(number): "x" for number in range(101)}}),
        ("labels.a", {"labels": {"a": "x" * 2001}}),
        ("policy.a", {"policy": {"a": "x" * 2001}}),
        ("components", {"components": [{"name": f"c{number}", "digest": "d"} for number in range(201)]}),
    ],
)
def test_an_agent_that_registers_too_much_is_refused(db: None, field: str, changes: dict[str, Any]) -> None:
    with pytest.raises(Exception, match=field) as caught:
        register("a1", **changes)
    assert caught.value.data["field"] == field  # type: ignore[attr-defined]
    assert agents.find(administrator(), "a1") is None


def test_a_report_has_a_bounded_number_of_metrics(api: Api, study: Any) -> None:
    name = study()
    api.ok("POST", f"/studies/{name}/suggestions", {"count": 1})
    many = {"seconds": 1.0, **{f"m{number}": 1.0 for number in range(1000)}}
    for metrics in (many, {"seconds": 1.0, "x" * 201: 1.0}):
        problem = api.refused(
            400, "invalid_argument", "POST", f"/studies/{name}/trials/1/complete", {"metrics": metrics}
        )
        assert problem["data"]["field"] == "metrics"


def test_the_known_hash_of_another_credential_is_invalid_input(api: Api) -> None:
    _, secret = enrolment.create(administrator())
    enrolment.enrol(secret, agent_id="a1", credential_digest="a" * 64)
    _, secret = enrolment.create(administrator())
    with pytest.raises(Exception, match="no other agent uses"):
        enrolment.enrol(secret, agent_id="a2", credential_digest="a" * 64)
    json.dumps(api.ok("GET", "/agents"))


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [
        ("POST", "/matching/match", {"job": {}, "components": ["x"] * 100_000}, "components"),
        ("POST", "/studies/s/results", {"results": [{}] * 100_000}, "results"),
        ("POST", "/studies/s/suggestions", {"held_trials": [1] * 100_000}, "held_trials"),
        ("PATCH", "/studies/s", {"tags": ["x"] * 100_000}, "tags"),
    ],
)
def test_a_long_list_is_refused_before_its_items_are_checked(
    api: Api, method: str, path: str, body: dict[str, Any], field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[object] = []
    monkeypatch.setattr(serializers.Field, "run_validation", lambda _, data=None: checked.append(data))
    problem = api.refused(400, "invalid_argument", method, path, body)
    assert (problem["data"]["field"], len(checked)) == (field, 0)
    assert problem["detail"].endswith("Use at most 1000 items.")


def test_a_long_name_of_a_tenant_takes_no_memory(api: Api) -> None:
    principals.forget()
    for number in range(3):
        header = {"X-Trimtab-Tenant": f"{number:060000}"}
        assert api.client.get("/api/v1/session", headers=header).status_code == 200
    assert sum(len(part) for key in principals._remembered.entries for part in key) < 2000
