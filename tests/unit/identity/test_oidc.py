"""Tokens and keys of an issuer inside the test, for cases that a Keycloak cannot produce."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.core.exceptions import ImproperlyConfigured

from service.core.errors import TrimtabError, Unauthenticated, Unavailable
from service.identity import keys
from service.identity.keys import Keys
from service.identity.oidc import Verifier
from service.tenancy.principal import Role
from tests.factories.patience import wait_for

# Later than the end of any test run.
YEAR = 365 * 24 * 3600
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())


def public(name: str, key: Any, algorithm: Any) -> jwt.PyJWK:
    return jwt.PyJWK({**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig"})


KEYS = {
    "rsa": public("rsa", RSA, jwt.algorithms.RSAAlgorithm),
    "ec": public("ec", EC, jwt.algorithms.ECAlgorithm),
}


class Issuer:
    """The published keys, how often they were fetched, and whether a fetch succeeds."""

    def __init__(self) -> None:
        self.keys: Mapping[str, jwt.PyJWK] = KEYS
        self.fetched = 0
        self.away = False

    def fetch(self) -> Mapping[str, jwt.PyJWK]:
        self.fetched += 1
        if self.away:
            raise OSError("connection refused")
        return self.keys


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Return a function that moves the clock of the keys forward by some seconds."""
    passed = 1000.0

    class Clock:
        monotonic = staticmethod(lambda: passed)

    monkeypatch.setattr(keys, "time", Clock)

    def forward(seconds: float) -> None:
        nonlocal passed
        passed += seconds

    return forward


def verifier(issuer: Issuer, **changes: Any) -> Verifier:
    settings: dict[str, Any] = {
        "issuer": "https://sso.example/realms/trimtab",
        "audience": "trimtab",
        "algorithms": ("RS256",),
        "leeway_seconds": 10.0,
        "groups": "/tenants",
        "keys": Keys(issuer.fetch),
    }
    return Verifier(**(settings | changes))


def token(key: Any = RSA, algorithm: str = "RS256", kid: str = "rsa", **changes: object) -> str:
    now = int(time.time())
    claims: dict[str, object] = {
        "iss": "https://sso.example/realms/trimtab", "aud": "trimtab", "sub": "id-1", "iat": now, "exp": now + 60,
        "typ": "Bearer", "preferred_username": "ann", "sid": "s-1", "groups": ["/tenants/acme/member"],
    }  # fmt: skip
    claims |= changes
    kept = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(kept, key, algorithm, headers={"kid": kid})


def refused(check: Verifier, text: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        check.verify(text)
    assert text not in caught.value.message
    return caught.value.code


def test_the_content_of_a_token(issuer: Issuer) -> None:
    groups = [
        "/tenants/acme/viewer", "/tenants/acme/admin", "/tenants/acme/agent", "/tenants/globex/agent",
        "/tenants/none", "/tenants/x/owner", "/other/acme/admin", "/tenants/deep/er/admin", "tenants/acme/admin", 7,
    ]  # fmt: skip
    found = verifier(issuer).verify(token(groups=groups, realm_access={"roles": ["operator", "x"]}))
    assert found.tenants == {"acme": Role.ADMIN, "globex": Role.AGENT}
    assert found.operator
    assert (found.proof.subject, found.proof.name, found.proof.session) == ("id-1", "ann", "s-1")
    odd = verifier(issuer).verify(token(groups="/tenants/acme/admin", realm_access="operator", preferred_username=None))
    assert (odd.tenants, odd.operator, odd.proof.name) == ({}, False, "id-1")


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("token_expired", {"exp": int(time.time()) - 3600}),
        ("token_expired", {"exp": 0}),
        ("wrong_audience", {"aud": "account"}),
        ("wrong_audience", {"aud": ["account", "other"]}),
        ("wrong_issuer", {"iss": "https://sso.example/realms/trimtab/"}),
        ("wrong_issuer", {"iss": "https://evil.example"}),
        ("invalid_token", {"typ": "ID"}),
        ("invalid_token", {"typ": "Refresh"}),
        ("invalid_token", {"typ": None}),
        ("invalid_token", {"typ": ""}),
        ("invalid_token", {"typ": "bearer"}),
        ("invalid_token", {"typ": ["Bearer"]}),
        ("invalid_token", {"typ": "DPoP"}),
        ("invalid_token", {"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}}),
        ("invalid_token", {"sub": ""}),
        ("invalid_token", {"sub": " "}),
        ("invalid_token", {"sub": "a" * 201}),
        ("invalid_token", {"sub": "a\0b"}),
        ("invalid_token", {"preferred_username": "ann\u202e"}),
        ("invalid_token", {"preferred_username": {"name": "ann"}}),
        ("invalid_token", {"preferred_username": "a" * 201}),
        ("invalid_token", {"sid": "s\0"}),
        ("wrong_audience", {"aud": []}),
        ("wrong_audience", {"aud": ""}),
        ("wrong_audience", {"aud": [7]}),
        ("wrong_audience", {"aud": ["trimtab", 7]}),
        ("wrong_audience", {"aud": "trimtab-other"}),
        ("invalid_token", {"nbf": "soon"}),
        ("invalid_token", {"iat": int(time.time()) + YEAR}),
        ("invalid_token", {"nbf": int(time.time()) + YEAR}),
        ("invalid_token", {"exp": None}),
        ("invalid_token", {"exp": 10**400}),
        ("invalid_token", {"exp": 10**12}),
        ("invalid_token", {"iat": -(10**12)}),
        ("invalid_token", {"iat": None}),
        ("invalid_token", {"sub": None}),
        ("invalid_token", {"iss": None}),
        ("invalid_token", {"iat": "soon"}),
    ],
)
def test_a_claim_that_is_wrong_or_missing_is_refused(issuer: Issuer, code: str, changes: dict[str, Any]) -> None:
    assert refused(verifier(issuer), token(**changes)) == code


def with_header(claims: Mapping[str, Any] | None = None, **header: Any) -> str:
    """Return a token with these fields in its header, and changes of its claims."""
    content = jwt.decode(token(**(claims or {})), options={"verify_signature": False})
    return jwt.encode(content, RSA, "RS256", headers={"kid": "rsa", **header})


@pytest.mark.parametrize("typ", ["at+jwt", "application/at+JWT", "AT+JWT"])
def test_a_provider_may_say_in_the_header_that_it_is_an_access_token(issuer: Issuer, typ: str) -> None:
    assert verifier(issuer).verify(with_header({"typ": None}, typ=typ)).proof.name == "ann"
    assert refused(verifier(issuer), with_header({"typ": "ID"}, typ=typ)) == "invalid_token"


@pytest.mark.parametrize(
    "header", [{"typ": "logout+jwt"}, {"typ": "dpop+jwt"}, {"typ": 7}, {"crit": ["exp"], "exp": 1}, {"crit": []}]
)
def test_another_kind_of_token_in_the_header_is_refused(issuer: Issuer, header: dict[str, Any]) -> None:
    assert refused(verifier(issuer), with_header(**header)) == "invalid_token"


def test_a_list_of_audiences_has_the_service_among_others(issuer: Issuer) -> None:
    found = verifier(issuer).verify(token(aud=["account", "trimtab"], azp="another-client"))
    assert found.proof.subject == "id-1"


@pytest.mark.parametrize("name", ["system", "administrator", "operator", "agent/node-1", "person/x"])
def test_nobody_has_the_name_of_a_part_of_the_service(issuer: Issuer, name: str) -> None:
    """The audit trail, the owners of studies and the machinery's own entries go by names."""
    assert verifier(issuer).verify(token(preferred_username=name)).proof.name == f"person/{name}"


def test_a_missing_audience_is_refused(issuer: Issuer) -> None:
    assert refused(verifier(issuer), token(aud=None)) == "wrong_audience"


def test_clocks_may_differ_a_little(issuer: Issuer) -> None:
    now = int(time.time())
    check = verifier(issuer, leeway_seconds=300.0)
    check.verify(token(iat=now - 200, exp=now - 100))
    check.verify(token(iat=now + 100, exp=now + 200))
    assert refused(verifier(issuer, leeway_seconds=5.0), token(iat=now - 200, exp=now - 100)) == "token_expired"


def test_only_the_algorithms_of_the_settings_count(issuer: Issuer) -> None:
    assert refused(verifier(issuer), token(EC, "ES256", "ec")) == "invalid_token"
    verifier(issuer, algorithms=("ES256",)).verify(token(EC, "ES256", "ec"))
    assert refused(verifier(issuer, algorithms=("ES256",)), token()) == "invalid_token"
    # a key of the other kind
    assert refused(verifier(issuer, algorithms=("RS256", "ES256")), token(EC, "ES256", "rsa")) == "invalid_token"
    for algorithm in ("none", "HS256", "", "rs256", "EdDSA"):
        with pytest.raises(ImproperlyConfigured, match="RS256"):
            verifier(issuer, algorithms=("RS256", algorithm))


def test_a_token_without_the_issuers_signature_is_refused(issuer: Issuer) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    assert refused(verifier(issuer), token(stranger)) == "invalid_token"
    good = token()
    header, claims, signature = good.split(".")
    for bad in (
        f"{header}.{claims}.", f"{header}..{signature}", f"{header}.{claims}", "a.b.c", "..", good + "a" * 20_000,
        f"{header}.{token(sub='id-2').split('.')[1]}.{signature}",
    ):  # fmt: skip
        assert refused(verifier(issuer), bad) == "invalid_token"


def test_keys_are_fetched_once_and_not_during_a_call(issuer: Issuer, clock: Callable[[float], None]) -> None:
    check = verifier(issuer)
    for _ in range(20):
        check.verify(token())
    assert issuer.fetched == 1
    # Later they are fetched in the background, and a withdrawn key becomes invalid.
    issuer.keys = {"ec": KEYS["ec"]}
    clock(keys.REFRESH_SECONDS + 1)
    check.verify(token())
    wait_for(lambda: issuer.fetched == 2)
    clock(keys.RETRY_SECONDS + 1)
    wait_for(lambda: refuses(check))


def test_a_new_key_is_fetched_when_it_is_first_seen(issuer: Issuer, clock: Callable[[float], None]) -> None:
    check = verifier(issuer, algorithms=("RS256", "ES256"))
    issuer.keys = {"rsa": KEYS["rsa"]}
    check.verify(token())
    issuer.keys = KEYS
    clock(keys.RETRY_SECONDS + 1)
    check.verify(token(EC, "ES256", "ec"))
    assert issuer.fetched == 2


def test_invented_keys_do_not_cause_a_fetch_for_each(issuer: Issuer, clock: Callable[[float], None]) -> None:
    check = verifier(issuer)
    check.verify(token())
    clock(keys.RETRY_SECONDS + 1)
    for number in range(50):
        assert refused(check, token(kid=f"made-up-{number}")) == "unknown_key"
    assert issuer.fetched == 2
    check.verify(token())


def test_an_offline_issuer_is_not_needed_while_its_keys_are_known(
    issuer: Issuer, clock: Callable[[float], None]
) -> None:
    check = verifier(issuer)
    check.verify(token())
    issuer.away = True
    for _ in range(5):
        clock(keys.REFRESH_SECONDS + 1)
        check.verify(token())
    clock(keys.RETRY_SECONDS + 1)
    with pytest.raises(Unavailable) as caught:
        check.verify(token(kid="new"))
    assert caught.value.retryable
    wait_for(lambda: not any(thread.name == "keys" for thread in threading.enumerate()))


def test_the_service_is_unavailable_without_any_key(issuer: Issuer, clock: Callable[[float], None]) -> None:
    issuer.away = True
    check = verifier(issuer)
    for _ in range(10):
        with pytest.raises(Unavailable):
            check.verify(token())
    assert issuer.fetched == 1
    issuer.away = False
    clock(keys.RETRY_SECONDS + 1)
    check.verify(token())


def test_many_at_once_fetch_once(issuer: Issuer) -> None:
    check = verifier(issuer)
    faults: list[TrimtabError] = []

    def verify() -> None:
        try:
            check.verify(token())
        except TrimtabError as error:
            faults.append(error)

    threads = [threading.Thread(target=verify) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert issuer.fetched == 1


@pytest.fixture
def web() -> Iterator[dict[str, Any]]:
    """A server on this machine: a map from paths to JSON answers; `url` is its address."""
    pages: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(pages.get(self.path, {})).encode()
            self.send_response(200 if self.path in pages else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages["url"] = f"http://127.0.0.1:{server.server_port}"
    yield pages
    server.shutdown()
    server.server_close()


def test_published_keys_are_read(web: dict[str, Any]) -> None:
    url = web["url"]
    key = jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True)
    web["/realms/t/.well-known/openid-configuration"] = {"issuer": f"{url}/realms/t", "jwks_uri": f"{url}/keys"}
    web["/keys"] = {"keys": [{**key, "kid": "a", "use": "sig"}, {**key, "kid": "b", "use": "enc"}, {"kty": "oct"}]}
    assert set(keys.fetch(f"{url}/realms/t", "")) == {"a"}
    assert set(keys.fetch("https://elsewhere.example", f"{url}/keys")) == {"a"}
    web["/keys"] = {"keys": []}
    with pytest.raises(ValueError, match="no signing keys"):
        keys.fetch(f"{url}/realms/t", "")
    web["/realms/t/.well-known/openid-configuration"]["issuer"] = "https://evil.example"
    with pytest.raises(ValueError, match=r"evil\.example"):
        keys.fetch(f"{url}/realms/t", "")
    with pytest.raises(OSError, match="404"):
        keys.fetch(f"{url}/other", "")
    with pytest.raises(ValueError, match="web address"):
        keys.fetch("", "file:///etc/passwd")


def refuses(check: Verifier) -> bool:
    try:
        check.verify(token())
    except Unauthenticated:
        return True
    return False
