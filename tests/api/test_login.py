from __future__ import annotations

import pytest
from django.test import Client

from service.identity import enrolment, secret
from service.identity.login import create_code
from service.identity.principals import administrator
from tests.api.conftest import Api


def test_a_login_link_is_good_once(db: None) -> None:
    code = create_code()
    browser = Client()
    answer = browser.get(f"/login?code={code}")
    assert (answer.status_code, answer.headers["Location"], answer.headers["Cache-Control"]) == (302, "/", "no-store")
    assert browser.get("/api/v1/session").status_code == 200
    # Pressed again by the one who is signed in, it does no harm.
    assert browser.get(f"/login?code={code}").headers["Location"] == "/"
    other = Client()
    answer = other.get(f"/login?code={code}")
    assert answer.headers["Location"] == "/sign-in?error=invalid_login_code"
    assert "trimtab_session" not in other.cookies
    assert other.get("/login").headers["Location"] == "/sign-in?error=invalid_login_code"


@pytest.mark.parametrize("kind", ["API token", "agent's credential"])
def test_a_programs_token_opens_no_session(api: Api, kind: str) -> None:
    text = secret.create(secret.Kind.AGENT)
    if kind == "API token":
        # With every scope it still is less than its owner's session: it can be revoked.
        text = api.ok("POST", "/tokens", {"name": "script", "scopes": ["read", "tune", "agent", "admin"]})["secret"]
    else:
        _, token = enrolment.create(administrator())
        enrolment.enrol(token, agent_id="a", credential_digest=secret.digest(text))
    browser = Client(headers={"X-Trimtab-Console": "1"})
    answer = browser.post("/api/v1/session", {"token": text}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_a_persons_token")
    assert "trimtab_session" not in answer.cookies
    assert browser.get("/api/v1/session").status_code == 401
    # The same secret is good for what it is made for.
    assert Api(text)("GET", "/session")[0] == 200
