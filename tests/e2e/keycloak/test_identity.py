"""Sign-in with a real Keycloak, with the same results over REST and gRPC."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import grpc
import httpx
import jwt
import psutil
import pytest

from service._gen import identity_pb2, identity_pb2_grpc, tuning_pb2, tuning_pb2_grpc
from tests.factories.grpc_service import WithToken, refusal_of
from tests.factories.hosted import TOKEN, Hosted, hosted_service
from tests.factories.keycloak import OTHER_CLIENT, PASSWORD, PEOPLE, TENANTS, Keycloak
from tests.factories.patience import PATIENCE, wait_for

SPEC: dict[str, Any] = {
    "space": {"parameters": [{"name": "x", "type": "float", "min": 0.0, "max": 1.0}]},
    "objectives": [{"metric": "loss", "goal": "minimize"}],
    "algorithm": {"name": "random"},
}


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis_url: str, keycloak: Keycloak) -> Iterator[Hosted]:
    # One machine has one clock, so a token's end is its end.
    environment = {**keycloak.environment, "TRIMTAB_OIDC_LEEWAY_SECONDS": "0"}
    with hosted_service(tmp_path_factory.mktemp("identity"), redis_url, environment, tenants=TENANTS) as hosted:
        yield hosted


@dataclass
class Interfaces:
    """Both interfaces of a service, REST and gRPC. They must give the same answers."""

    hosted: Hosted

    def rest(self, token: str, method: str, path: str, body: object = None, tenant: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", **({"X-Trimtab-Tenant": tenant} if tenant else {})}
        return httpx.request(
            method, f"{self.hosted.http_url}/api/v1{path}", json=body, headers=headers, timeout=PATIENCE
        )

    def ok(self, token: str, method: str, path: str, body: object = None) -> Any:
        answer = self.rest(token, method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def who(self, token: str, tenant: str = "") -> Any:
        """Name, tenant and role behind a token; ("", status, code) where it is refused."""
        answer = self.rest(token, "GET", "/session", tenant=tenant)
        said = answer.json()
        names = ("actor", "tenant", "role")
        by_rest = tuple(said[name] for name in names) if answer.is_success else ("", answer.status_code, said["code"])
        by_grpc = self._who_by_grpc(token, tenant)
        assert by_rest == by_grpc
        return by_grpc

    def _who_by_grpc(self, token: str, tenant: str) -> Any:
        metadata = (("authorization", f"Bearer {token}"), *((("trimtab-tenant", tenant),) if tenant else ()))
        with grpc.insecure_channel(self.hosted.grpc_address) as channel:
            stub = identity_pb2_grpc.IdentityServiceStub(channel)
            try:
                said = stub.WhoAmI(identity_pb2.WhoAmIRequest(), timeout=PATIENCE, metadata=metadata)
            except grpc.RpcError as error:
                found = refusal_of(error)
                statuses = {
                    grpc.StatusCode.UNAUTHENTICATED: 401, grpc.StatusCode.PERMISSION_DENIED: 403,
                    grpc.StatusCode.UNAVAILABLE: 503,
                }  # fmt: skip
                return "", statuses[found.status], found.code
            return said.actor, said.tenant, said.role

    def refused(self, token: str, tenant: str = "") -> tuple[int, str]:
        name, status, code = self.who(token, tenant)
        assert name == "", f"let in as {name}"
        return int(status), code

    def refused_in_the_end(self, token: str, code: str) -> None:
        """Wait until both interfaces, which are two processes with a cache each, refuse the token."""

        def refused() -> bool:
            answer = self.rest(token, "GET", "/session")
            return not answer.is_success and self._who_by_grpc(token, "")[0] == ""

        wait_for(refused, "the token is refused")
        assert self.refused(token) == (401, code)


@pytest.fixture
def interfaces(hosted: Hosted) -> Interfaces:
    return Interfaces(hosted)


@pytest.fixture
def person(keycloak: Keycloak) -> str:
    """One more member of acme, for a test that does something to him."""
    name = f"p-{uuid.uuid4().hex[:8]}"
    keycloak.add_user(name, "/tenants/acme/member")
    return name


@pytest.mark.parametrize(
    ("name", "tenant", "role"),
    [(name, *groups[0].split("/")[2:]) for name, groups in PEOPLE.items() if len(groups) == 1 and name != "dora"],
)
def test_tenant_and_role_come_from_the_token(
    interfaces: Interfaces, keycloak: Keycloak, name: str, tenant: str, role: str
) -> None:
    assert interfaces.who(keycloak.token(name)) == (name, tenant, role)


def test_operators_and_machines(interfaces: Interfaces, keycloak: Keycloak) -> None:
    assert interfaces.who(keycloak.token("olga")) == ("olga", "", "operator")
    assert interfaces.rest(keycloak.token("olga"), "GET", "/studies").status_code == 403
    machine = keycloak.machine_token()
    assert interfaces.who(machine) == ("service-account-trimtab-agents", "default", "agent")
    assert interfaces.rest(machine, "GET", "/studies").status_code == 403


def test_a_member_of_several_tenants_says_which(interfaces: Interfaces, keycloak: Keycloak) -> None:
    token = keycloak.token("both")
    assert interfaces.refused(token) == (403, "tenant_required")
    assert interfaces.rest(token, "GET", "/session").json()["data"]["tenants"] == ["acme", "globex"]
    assert interfaces.who(token, "acme") == ("both", "acme", "member")
    assert interfaces.who(token, "globex") == ("both", "globex", "viewer")
    assert interfaces.refused(token, "default") == (403, "not_a_member")
    assert interfaces.refused(keycloak.token("mel"), "globex") == (403, "not_a_member")


def test_a_member_of_no_tenant_is_refused(interfaces: Interfaces, keycloak: Keycloak) -> None:
    assert interfaces.refused(keycloak.token("nobody")) == (403, "no_tenant")


def test_a_tenant_that_the_service_does_not_have_is_refused(interfaces: Interfaces, keycloak: Keycloak) -> None:
    tenants = keycloak.admin("GET", "/group-by-path/tenants")["id"]
    keycloak.admin("POST", f"/groups/{tenants}/children", {"name": "ghost"})
    ghost = keycloak.admin("GET", "/group-by-path/tenants/ghost")["id"]
    keycloak.admin("POST", f"/groups/{ghost}/children", {"name": "admin"})
    name = f"p-{uuid.uuid4().hex[:8]}"
    keycloak.add_user(name, "/tenants/ghost/admin")
    assert interfaces.refused(keycloak.token(name)) == (403, "unknown_tenant")


def test_an_expired_token_is_refused(interfaces: Interfaces, keycloak: Keycloak) -> None:
    [client] = keycloak.admin("GET", "/clients", params={"clientId": "tests"})
    brief = {**client, "clientId": f"brief-{uuid.uuid4().hex[:8]}"}
    del brief["id"]
    brief["protocolMappers"] = [
        {key: value for key, value in item.items() if key != "id"} for item in client["protocolMappers"]
    ]
    brief["attributes"] = {**client["attributes"], "access.token.lifespan": "3"}
    keycloak.admin("POST", "/clients", brief)
    token = keycloak.token("mel", brief["clientId"])
    interfaces.refused_in_the_end(token, "token_expired")


def test_tokens_for_others_are_refused(interfaces: Interfaces, keycloak: Keycloak) -> None:
    assert interfaces.refused(keycloak.token("alice", OTHER_CLIENT)) == (401, "wrong_audience")
    # Another realm of the same Keycloak: another issuer, with keys of its own.
    master = httpx.post(
        f"{keycloak.url}/realms/master/protocol/openid-connect/token",
        data={
            "grant_type": "password", "client_id": "admin-cli", "username": "admin",
            "password": keycloak.admin_password,
        },
        timeout=PATIENCE,
    ).json()["access_token"]  # fmt: skip
    assert interfaces.refused(master) == (401, "unknown_key")
    # What else Keycloak signs for the same person.
    answer = keycloak.tokens("alice", scope="openid")
    assert interfaces.refused(answer["id_token"])[0] == 401
    assert interfaces.refused(answer["refresh_token"])[0] == 401


def test_forged_tokens_are_refused(interfaces: Interfaces, keycloak: Keycloak) -> None:
    good = keycloak.token("alice")
    claims = jwt.decode(good, options={"verify_signature": False})
    header = jwt.get_unverified_header(good)
    assert interfaces.refused(jwt.encode(claims, "", "none", headers={"kid": header["kid"]})) == (401, "invalid_token")

    published = httpx.get(f"{keycloak.issuer}/protocol/openid-connect/certs", timeout=PATIENCE).json()["keys"]
    key = next(key for key in published if key["kid"] == header["kid"])
    from cryptography.hazmat.primitives import serialization

    pem = jwt.PyJWK(key).key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), base64.b64decode(key["x5c"][0])):
        forged = hs256({"alg": "HS256", "typ": "JWT", "kid": key["kid"]}, claims, secret)
        assert interfaces.refused(forged) == (401, "invalid_token")
        forged = hs256({"alg": "RS256", "typ": "JWT", "kid": key["kid"]}, claims, secret)
        assert interfaces.refused(forged) == (401, "invalid_token")

    start, middle, end = good.split(".")
    raised = json.loads(base64.urlsafe_b64decode(middle + "=="))
    raised["groups"] = ["/tenants/globex/admin"]
    middle = base64.urlsafe_b64encode(json.dumps(raised).encode()).decode().rstrip("=")
    assert interfaces.refused(f"{start}.{middle}.{end}") == (401, "invalid_token")
    assert interfaces.who(good) == ("alice", "acme", "admin")


def test_a_revoked_person_loses_access_and_may_sign_in_again(
    interfaces: Interfaces, keycloak: Keycloak, person: str
) -> None:
    token = keycloak.token(person)
    script = interfaces.ok(token, "POST", "/tokens", {"name": "script", "scopes": ["read"]})["secret"]
    assert interfaces.who(token)[0] == interfaces.who(script)[0] == person
    # An administrator of another tenant has no say here, nor has a member.
    interfaces.ok(keycloak.token("gus"), "POST", "/revocations", {"person": person})
    assert interfaces.rest(keycloak.token("mel"), "POST", "/revocations", {"person": person}).status_code == 403
    time.sleep(2.5)  # longer than any process believes what it saw
    assert interfaces.who(token)[0] == interfaces.who(script)[0] == person

    assert interfaces.ok(keycloak.token("alice"), "POST", "/revocations", {"person": person}) == {"tokens": 1}
    interfaces.refused_in_the_end(token, "revoked")
    interfaces.refused_in_the_end(script, "invalid_token")
    wait_for(lambda: interfaces.rest(keycloak.token(person), "GET", "/session").is_success, "he may sign in again")
    assert interfaces.refused(token) == (401, "revoked")


def test_one_session_is_revoked_and_the_others_are_not(interfaces: Interfaces, keycloak: Keycloak, person: str) -> None:
    one, other = keycloak.token(person), keycloak.token(person)
    session = jwt.decode(one, options={"verify_signature": False})["sid"]
    interfaces.ok(keycloak.token("alice"), "POST", "/revocations", {"session": session})
    interfaces.refused_in_the_end(one, "revoked")
    assert interfaces.who(other)[0] == person


def test_a_disabled_user_loses_access(interfaces: Interfaces, keycloak: Keycloak, person: str) -> None:
    with pytest.raises(httpx.HTTPStatusError):
        keycloak.token("dora")
    answer = keycloak.tokens(person)
    assert interfaces.who(answer["access_token"])[0] == person
    keycloak.set_enabled(person, False)
    with pytest.raises(httpx.HTTPStatusError):
        keycloak.grant(grant_type="refresh_token", client_id="tests", refresh_token=answer["refresh_token"])
    # The token in hand counts until it ends, or until an administrator revokes.
    interfaces.ok(keycloak.token("alice"), "POST", "/revocations", {"person": keycloak.user(person)["id"]})
    interfaces.refused_in_the_end(answer["access_token"], "revoked")


def test_a_removed_member_is_out(interfaces: Interfaces, keycloak: Keycloak, person: str) -> None:
    before = keycloak.tokens(person)
    script = interfaces.ok(before["access_token"], "POST", "/tokens", {"name": "script", "scopes": ["read"]})["secret"]
    assert interfaces.who(script) == (person, "acme", "member")
    keycloak.leave_group(person, "/tenants/acme/member")
    assert interfaces.refused(keycloak.token(person)) == (403, "no_tenant")
    interfaces.refused_in_the_end(script, "owner_left")
    renewed = keycloak.grant(grant_type="refresh_token", client_id="tests", refresh_token=before["refresh_token"])
    assert interfaces.refused(renewed["access_token"]) == (403, "no_tenant")
    interfaces.ok(keycloak.token("alice"), "POST", "/revocations", {"person": person})
    interfaces.refused_in_the_end(before["access_token"], "revoked")


def test_a_token_is_no_more_than_its_owner(interfaces: Interfaces, keycloak: Keycloak) -> None:
    name = f"p-{uuid.uuid4().hex[:8]}"
    keycloak.add_user(name, "/tenants/acme/admin")
    script = interfaces.ok(keycloak.token(name), "POST", "/tokens", {"name": "script", "scopes": ["admin"]})["secret"]
    assert interfaces.who(script) == (name, "acme", "admin")
    members = {one["name"]: one["role"] for one in interfaces.ok(script, "GET", "/members")["members"]}
    assert members[name] == "admin"
    keycloak.leave_group(name, "/tenants/acme/admin")
    keycloak.join_group(name, "/tenants/acme/viewer")
    assert interfaces.who(keycloak.token(name)) == (name, "acme", "viewer")
    wait_for(lambda: interfaces.rest(script, "GET", "/audit").status_code == 403, "the token has lost the role")
    wait_for(lambda: interfaces._who_by_grpc(script, "")[2] == "viewer", "and over gRPC too")


def test_new_keys_are_found(interfaces: Interfaces, keycloak: Keycloak) -> None:
    before = keycloak.token("alice")
    assert interfaces.who(before)[0] == "alice"
    keycloak.rotate_keys()
    after = keycloak.token("alice")
    assert jwt.get_unverified_header(after)["kid"] != jwt.get_unverified_header(before)["kid"]
    # A process that asked for keys seconds ago waits a few before it asks again.
    wait_for(lambda: interfaces.rest(after, "GET", "/session").is_success, "the new key is found")
    wait_for(lambda: interfaces._who_by_grpc(after, "")[0] == "alice", "the new key is found over gRPC too")
    assert interfaces.who(before)[0] == "alice"


def test_while_keycloak_does_not_answer_its_tokens_count(interfaces: Interfaces, keycloak: Keycloak) -> None:
    tokens = [keycloak.token(name) for name in ("alice", "mel", "vera")]
    assert interfaces.who(tokens[0])[0] == "alice"
    assert keycloak.child.process is not None
    processes = [*psutil.Process(keycloak.child.process.pid).children(recursive=True)]
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        assert [interfaces.who(token)[0] for token in tokens] == ["alice", "mel", "vera"]
        # A token names an unknown key: the caller gets 401.
        status, _ = interfaces.refused(jwt.encode({}, "x" * 32, "HS256", headers={"kid": "made-up"}))
        assert status == 401
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)


def test_streams_end_when_the_token_of_their_reader_is_revoked(
    interfaces: Interfaces, keycloak: Keycloak, person: str
) -> None:
    name = f"s-{uuid.uuid4().hex[:8]}"
    interfaces.ok(keycloak.token("mel"), "POST", "/studies", {"name": name, "spec": SPEC})
    token = keycloak.token(person)
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{interfaces.hosted.http_url}/api/v1/studies/{name}/events"
    with (
        httpx.stream("GET", url, headers=headers, timeout=PATIENCE) as stream,
        grpc.insecure_channel(interfaces.hosted.grpc_address) as channel,
    ):
        lines = stream.iter_lines()
        assert any(line.startswith("data:") for line in lines)
        tuning = tuning_pb2_grpc.TuningServiceStub(grpc.intercept_channel(channel, WithToken(token)))
        watch = tuning.WatchStudy(tuning_pb2.WatchStudyRequest(study=name), timeout=PATIENCE)
        next(watch)
        interfaces.ok(keycloak.token("alice"), "POST", "/revocations", {"person": person})
        interfaces.refused_in_the_end(token, "revoked")
        interfaces.ok(keycloak.token("mel"), "POST", f"/studies/{name}/suggestions", {"count": 1})
        assert not any(line.startswith("data:") for line in lines)
        with pytest.raises(grpc.RpcError) as caught:
            next(watch)
        assert refusal_of(caught.value).code == "revoked"


def test_the_administrators_token_is_taken_too(interfaces: Interfaces) -> None:
    assert interfaces.who(TOKEN) == ("administrator", "default", "operator")
    assert interfaces.refused("wrong") == (401, "invalid_token")
    assert PASSWORD not in TOKEN


def test_no_secret_is_in_the_database(interfaces: Interfaces, keycloak: Keycloak) -> None:
    made = interfaces.ok(keycloak.token("mel"), "POST", "/tokens", {"name": "t", "scopes": ["read", "tune"]})
    allowed = interfaces.ok(keycloak.token("alice"), "POST", "/enrolments", {})
    tables = interfaces.hosted.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (table,) in tables:
        rows = interfaces.hosted.execute(f'SELECT t::text FROM "{table}" AS t')
        for (row,) in rows:
            assert made["secret"] not in str(row)
            assert allowed["secret"] not in str(row)


def hs256(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    """A token signed with a shared secret, whatever its header says: PyJWT refuses to make one of a public key."""
    import hashlib
    import hmac

    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signature = hmac.new(secret, b".".join(parts), hashlib.sha256).digest()
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()
