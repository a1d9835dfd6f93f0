from __future__ import annotations

from collections.abc import Callable, Sequence

from service.identity import memberships
from service.identity.oidc import Identity, Proof
from service.identity.principals import administrator
from service.tenancy import tenants
from service.tenancy.principal import Role
from tests.api.conftest import Api


def test_a_token_is_made_used_listed_and_revoked(api: Api, study: Callable[..., str]) -> None:
    name = study()
    made = api.ok("POST", "/tokens", {"name": "script", "scopes": ["tune", "read"], "study": name, "days": 7})
    assert made["secret"].startswith("trm_")
    script = Api(made["secret"])
    assert script.ok("GET", f"/studies/{name}")["name"] == name
    script.refused(403, "not_permitted", "GET", "/studies")
    script.refused(403, "not_permitted", "GET", "/tokens")
    session = script.ok("GET", "/session")
    allowed = set(session.pop("actions"))
    assert ("trial.report" in allowed, "study.create" in allowed, "token.own" in allowed) == (True, True, False)
    assert session == {
        "actor": "administrator", "tenant": "default", "role": "operator", "scopes": ["read", "tune"], "study": name,
        "grpc_port": 0,
    }  # fmt: skip
    [listed] = api.ok("GET", "/tokens")["tokens"]
    assert "secret" not in listed
    assert (listed["hint"], listed["name"], listed["study"]) == (made["secret"][:8], "script", name)
    assert listed["last_used_at"] is not None
    assert api.ok("GET", "/tokens?everyone=true")["tokens"] == [listed]
    api.ok("DELETE", f"/tokens/{made['id']}")
    script.refused(401, "invalid_token", "GET", f"/studies/{name}")
    api.refused(404, "token_not_found", "DELETE", f"/tokens/{made['id']}")


def test_bad_tokens_are_refused_by_field(api: Api) -> None:
    for body, field in (
        ({"scopes": ["read"]}, "name"),
        ({"name": "x"}, "scopes"),
        ({"name": "x", "scopes": ["fly"]}, "scopes"),
        ({"name": "x", "scopes": "read"}, "scopes"),
        ({"name": "x", "scopes": ["read"], "days": 0}, "days"),
        ({"name": "x", "scopes": ["read"], "day": 1}, "day"),
    ):
        problem = api.refused(400, "invalid_argument", "POST", "/tokens", body)
        assert problem["data"]["field"].startswith(field)
    api.refused(404, "study_not_found", "POST", "/tokens", {"name": "x", "scopes": ["read"], "study": "none"})
    assert api.ok("GET", "/tokens")["tokens"] == []


def test_answers_with_secrets_must_not_be_cached(api: Api) -> None:
    for path, body in (("/tokens", {"name": "x", "scopes": ["read"]}), ("/enrolments", {"minutes": 5})):
        answer = api.client.post(f"/api/v1{path}", body, content_type="application/json")
        assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    assert answer.json()["secret"].startswith("tre_")


def test_revocations_name_one(api: Api) -> None:
    for body in ({}, {"person": "a", "session": "b"}, {"person": ""}):
        assert api("POST", "/revocations", body)[0] == 400
    assert api.ok("POST", "/revocations", {"person": "ann"}) == {"tokens": 0}
    assert api.ok("POST", "/revocations", {"person": "ann"}) == {"tokens": 0}
    assert api.ok("POST", "/revocations", {"session": "s"}) == {"tokens": 0}
    api.refused(404, "agent_not_enrolled", "DELETE", "/agents/none/credentials")


def test_anybody_may_ask_how_to_sign_in(db: None) -> None:
    assert Api("wrong").ok("GET", "/sign-in") == {"token": True, "provider": None, "token_file": ""}


def test_members_have_the_latest_roles_from_the_identity_provider(api: Api) -> None:
    assert api.ok("GET", "/members") == {"members": []}
    tenant = tenants.slug_of(administrator().tenant_id)
    reported: Sequence[tuple[str, str, dict[str, Role]]] = (
        ("s1", "vera", {tenant: Role.VIEWER}),
        ("s2", "mel", {tenant: Role.MEMBER}),
        ("s2", "mel", {}),
    )
    for time, (subject, name, roles) in enumerate(reported, 1):
        proof = Proof(f"{subject}-{tenant}", name, "", time, time + 60)
        memberships.note(Identity(proof, roles, operator=False))
    members = api.ok("GET", "/members")["members"]
    assert [(member["name"], member["role"]) for member in members] == [("vera", "viewer")]
