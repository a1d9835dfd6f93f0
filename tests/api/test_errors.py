"""Requests that are refused before any rule of the domain: malformed, unknown, unauthenticated, cross-site."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from django.conf import settings
from django.db import OperationalError
from django.test import Client, RequestFactory
from rest_framework.response import Response

from service.api import errors
from service.api.v1.studies import StudyList
from service.core.errors import Unavailable
from tests.api.conftest import SPEC, Api


def test_malformed_requests(api: Api) -> None:
    api.refused(400, "malformed_request", "POST", "/studies", b"{")
    api.refused(400, "malformed_request", "POST", "/studies", b'{"name": NaN}')
    api.refused(400, "malformed_request", "POST", "/studies", b"\xff\xfe")
    api.refused(400, "invalid_argument", "POST", "/studies", [1])
    api.refused(400, "invalid_argument", "GET", "/studies/a%00b")
    api.refused(405, "method_not_allowed", "PUT", "/studies", {})
    api.refused(404, "not_found", "GET", "/nowhere")
    api.refused(413, "message_too_large", "POST", "/studies", b" " * (settings.DATA_UPLOAD_MAX_MEMORY_SIZE + 1))
    response = api.client.post("/api/v1/studies", "name=s", content_type="application/x-www-form-urlencoded")
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")
    assert response.headers["Content-Type"] == errors.CONTENT_TYPE


def test_every_fault_of_a_body_is_reported(api: Api) -> None:
    problem = api.refused(400, "invalid_argument", "POST", "/studies/s/suggestions", {"count": "x", "held_trials": "y"})
    assert {fault["field"] for fault in problem["data"]["errors"]} == {"count", "held_trials"}


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"count": "x"}, "count: 'x' is not allowed. Use a whole number"),
        ({"count": 2.5}, "count: 2.5 is not allowed. Use a whole number"),
        ({"client_id": None}, "client_id: a value is missing. Use a value"),
        ({"client_id": []}, "client_id: [] is not allowed. Use a text"),
        ({"held_trials": "y"}, "held_trials: 'y' is not allowed. Use a list"),
    ],
)
def test_the_refusal_of_a_body_states_the_allowed_type(api: Api, changes: dict[str, object], reported: str) -> None:
    problem = api.refused(400, "invalid_argument", "POST", "/studies/s/suggestions", {"count": 1, **changes})
    assert problem["detail"].rstrip(".") == reported


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_wrong_token_is_refused(db: None, token: str) -> None:
    stranger = Api(token)
    code = "invalid_token" if token else "missing_token"
    for method, path in (("GET", "/studies"), ("POST", "/studies"), ("GET", "/agents"), ("GET", "/studies/s/events")):
        stranger.refused(401, code, method, path)
    response = stranger.client.get("/api/v1/studies")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")


def test_an_unexpected_error_shows_only_a_reference(caplog: pytest.LogCaptureFixture) -> None:
    error = errors.translate(RuntimeError("the secret"))
    assert errors.describe(error)[0] == 500
    assert "secret" not in error.message
    assert str(error.data["reference"]) in caplog.text


def test_a_database_that_is_away_is_worth_another_try() -> None:
    error = errors.translate(OperationalError("gone"))
    assert isinstance(error, Unavailable)
    assert errors.describe(error)[0] == 503
    assert errors.headers_of(error) == {"Retry-After": "1"}


def sign_in() -> Client:
    """A browser with a session; it carries no bearer token."""
    browser = Client()
    answer = browser.post(
        "/api/v1/session",
        json.dumps({"token": " test-token\n"}),
        "application/json",
        headers={"X-Trimtab-Console": "1"},
    )
    assert answer.status_code == 200
    return browser


def test_a_session_by_the_token(db: None) -> None:
    browser = sign_in()
    cookie = browser.cookies["trimtab_session"]
    assert (cookie["httponly"], cookie["samesite"], bool(cookie["secure"])) == (True, "Strict", False)
    session = browser.get("/api/v1/session").json()
    assert {"study.create", "tenant.manage", "agent.enrol"} <= set(session.pop("actions"))
    assert session == {
        "actor": "administrator",
        "tenant": "default",
        "role": "operator",
        "scopes": ["admin", "agent", "read", "tune"],
        "study": None,
        "grpc_port": 0,
    }
    assert browser.get("/api/v1/studies").status_code == 200
    assert browser.delete("/api/v1/session", headers={"X-Trimtab-Console": "1"}).status_code == 204
    assert browser.get("/api/v1/studies").status_code == 401


def test_over_https_the_cookie_is_secure(db: None) -> None:
    browser = Client()
    body = json.dumps({"token": "test-token"})
    browser.post("/api/v1/session", body, "application/json", headers={"X-Trimtab-Console": "1"}, secure=True)
    assert browser.cookies["trimtab_session"]["secure"]


def test_a_wrong_token_opens_no_session(db: None) -> None:
    browser = Client()
    body = json.dumps({"token": "wrong"})
    answer = browser.post("/api/v1/session", body, "application/json", headers={"X-Trimtab-Console": "1"})
    assert (answer.status_code, answer.json()["code"]) == (401, "invalid_token")
    assert "trimtab_session" not in browser.cookies


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Trimtab-Console": "1", "Sec-Fetch-Site": "cross-site"},
        {"X-Trimtab-Console": "1", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_cannot_write_in_a_users_name(db: None, headers: dict[str, str]) -> None:
    browser = sign_in()
    body = json.dumps({"name": "s", "spec": SPEC})
    answer = browser.post("/api/v1/studies", body, "application/json", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "cross_site_request")
    assert browser.get("/api/v1/studies").json()["total_count"] == 0
    own = {"X-Trimtab-Console": "1", "Sec-Fetch-Site": "same-origin"}
    assert browser.post("/api/v1/studies", body, "application/json", headers=own).status_code == 201


def test_a_forged_session_is_refused(db: None) -> None:
    browser = sign_in()
    browser.cookies["trimtab_session"] = browser.cookies["trimtab_session"].value[:-2] + "xx"
    answer = browser.get("/api/v1/studies")
    assert (answer.status_code, answer.json()["code"]) == (401, "session_expired")


def test_an_answer_with_a_number_that_is_not_finite_is_valid_json(
    api: Api, study: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = study()
    monkeypatch.setattr(StudyList, "get", lambda *_, **__: Response({"gain": math.inf, "more": [math.nan, 1.5]}))
    assert api.ok("GET", "/studies") == {"gain": None, "more": [None, 1.5]}
    assert api.ok("GET", f"/studies/{name}")["name"] == name


def test_an_answer_that_cannot_be_rendered_is_a_problem(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StudyList, "get", lambda *_, **__: Response({"value": object}))
    problem = api.refused(500, "internal", "GET", "/studies")
    assert problem["data"]["reference"]


def test_a_fault_outside_of_the_views_is_a_problem_below_api() -> None:
    requests = RequestFactory()
    try:
        raise RuntimeError("secret")
    except RuntimeError:
        answer, page = (errors.server_error(requests.get(path)) for path in ("/api/v1/studies", "/studies"))
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, errors.CONTENT_TYPE)
    assert json.loads(answer.content)["code"] == "internal"
    assert b"secret" not in answer.content
    assert (page.status_code, page.headers["Content-Type"]) == (500, "text/html; charset=utf-8")
