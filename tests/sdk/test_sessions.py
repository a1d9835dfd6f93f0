"""Logins at an identity provider: the device flow, renewal, and where they are kept."""

import json
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import pytest

import trimtab
from tests.factories.patience import PATIENCE
from tests.sdk.far_side import FarSide, Refusal, serve
from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.connection import login, oidc
from trimtab._internal.connection.login import Address, Login, Session
from trimtab.errors import Forbidden, InvalidInput, Timeout, Unauthenticated, Unavailable

Form = dict[str, str]


class Provider:
    """The endpoints of an identity provider that `trimtab` uses. `answer` says what the token endpoint answers."""

    def __init__(self) -> None:
        self.asked: list[Form] = []
        self.ended: list[Form] = []
        self.count = 0
        self.answer: Callable[[Form], tuple[int, dict[str, Any]]] = self.tokens
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths = {"device_authorization": "device", "token": "token", "revocation": "revoke"}
                self.say(
                    200,
                    {"issuer": provider.url}
                    | {f"{name}_endpoint": f"{provider.url}/{path}" for name, path in paths.items()},
                )

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = dict(urllib.parse.parse_qsl(body))
                if self.path == "/device":
                    self.say(
                        200,
                        {
                            "device_code": "d",
                            "user_code": "ABCD-EFGH",
                            "verification_uri": f"{provider.url}/verify",
                            "expires_in": 600,
                        },
                    )
                elif self.path == "/revoke":
                    provider.ended.append(form)
                    self.say(200, {})
                else:
                    provider.asked.append(form)
                    self.say(*provider.answer(form))

            def say(self, status: int, content: dict[str, Any]) -> None:
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(content).encode())

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def tokens(self, form: Form) -> tuple[int, dict[str, Any]]:
        self.count += 1
        return 200, {
            "access_token": f"access-{self.count}",
            "refresh_token": f"refresh-{self.count}",
            "expires_in": 300,
        }

    def refuses(self, error: str) -> None:
        self.answer = lambda form: (400, {"error": error, "error_description": f"it is {error}"})

    def session(self, expires_in: float = 300.0) -> Session:
        return Session(self.url, "cli", "access-0", "refresh-0", time.time() + expires_in)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    made = Provider()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TRIMTAB_URL", "TRIMTAB_TOKEN", "TRIMTAB_TENANT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


HERE = Address.parse("127.0.0.1:1")


def test_the_device_flow_waits_until_the_person_has_agreed(provider: Provider) -> None:
    device = oidc.begin(provider.url, "cli")
    assert (device.code, device.url, device.interval) == ("ABCD-EFGH", f"{provider.url}/verify", 5)
    answers = iter(["authorization_pending", "slow_down", "authorization_pending"])

    def answer(form: Form) -> tuple[int, dict[str, Any]]:
        error = next(answers, None)
        return (400, {"error": error}) if error else provider.tokens(form)

    provider.answer = answer
    slept: list[float] = []
    session = oidc.wait(provider.url, "cli", device, sleep=slept.append)
    assert (session.access_token, session.refresh_token) == ("access-1", "refresh-1")
    assert slept == [5, 5, 10, 10]
    assert {form["device_code"] for form in provider.asked} == {"d"}


@pytest.mark.parametrize(("error", "kind"), [("access_denied", Forbidden), ("expired_token", Timeout)])
def test_a_device_flow_that_fails_says_so(provider: Provider, error: str, kind: type[Exception]) -> None:
    device = oidc.begin(provider.url, "cli")
    provider.refuses(error)
    with pytest.raises(kind, match=r"refused in the browser|it is expired_token.*trimtab login"):
        oidc.wait(provider.url, "cli", device, sleep=lambda seconds: None)


def test_secrets_go_over_http_to_this_machine_alone() -> None:
    for issuer in ("http://sso.example.org/realms/t", "ftp://127.0.0.1", "sso.example.org"):
        with pytest.raises(InvalidInput, match="https"):
            oidc.begin(issuer, "cli")


def test_a_stored_session_is_renewed_before_it_ends_and_stored_again(provider: Provider, programs_start: None) -> None:
    far = FarSide()
    far.answers(pb.ListAgentsResponse(), pb.ListAgentsResponse())
    with serve(far):
        where = Address.parse(far.address)
        login.store(Login(where, session=provider.session(expires_in=10), tenant="acme"))
        with trimtab.Client() as client:
            client.list_agents()
            client.list_agents()
    assert far.tokens == {"Bearer access-1"}
    assert len(provider.asked) == 1
    kept = login.stored(where)
    assert kept is not None
    assert kept.session is not None
    assert (kept.session.refresh_token, kept.tenant) == ("refresh-1", "acme")


def client_of(far: FarSide, provider: Provider, expires_in: float = 300.0) -> trimtab.Client:
    login.store(Login(Address.parse(far.address), session=provider.session(expires_in)))
    return trimtab.Client(far.address, retry_seconds=5)


def test_a_refused_token_is_renewed_once(provider: Provider) -> None:
    far = FarSide()
    expired = Refusal(grpc.StatusCode.UNAUTHENTICATED, "too old", "token_expired")
    far.answers(expired, pb.ListAgentsResponse(), expired, expired)
    with serve(far), client_of(far, provider) as client:
        assert client.list_agents() == []
        assert far.tokens == {"Bearer access-0", "Bearer access-1"}
        with pytest.raises(Unauthenticated, match="too old"):
            client.list_agents()
    assert len(provider.asked) == 2


def test_the_error_for_an_expired_session_gives_instructions(provider: Provider) -> None:
    far = FarSide()
    provider.refuses("invalid_grant")
    with serve(far), client_of(far, provider, expires_in=-1) as client:
        with pytest.raises(Unauthenticated, match="trimtab login") as caught:
            client.list_agents()
        assert caught.value.code == "session_expired"
    assert far.calls == []


def test_a_provider_that_is_away_is_not_missed_before_the_token_ends(provider: Provider) -> None:
    far = FarSide()
    far.answers(pb.ListAgentsResponse())
    with serve(far):
        provider.close()
        with client_of(far, provider, expires_in=20) as soon:
            soon.list_agents()
        login.store(Login(Address.parse(far.address), session=provider.session(-1)))
        with (
            trimtab.Client(far.address, retry_seconds=0.3) as late,
            pytest.raises(Unavailable, match="identity provider"),
        ):
            late.list_agents()


def test_many_processes_renew_once(provider: Provider, programs_start: None) -> None:
    login.store(Login(HERE, session=provider.session(expires_in=-1)))
    imports = "from trimtab._internal.connection import bearer, login"
    program = f"{imports}; print(bearer.Bearer(login.find('127.0.0.1:1')).metadata())"
    running = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    shown = {process.communicate(timeout=PATIENCE)[0] for process in running}
    assert shown == {"(('authorization', 'Bearer access-1'),)\n"}
    assert len(provider.asked) == 1


def test_a_logout_during_a_refresh_stays(provider: Provider) -> None:
    login.store(Login(HERE, session=provider.session(expires_in=-1)))
    mine = login.find("127.0.0.1:1")
    assert login.forget(HERE) is not None
    assert login.renewed(mine, oidc.renew).session != mine.session
    assert login.stored(HERE) is None


def test_logging_out_ends_the_session_at_the_provider(provider: Provider) -> None:
    oidc.end(provider.session())
    assert provider.ended[0]["token"] == "refresh-0"


def test_the_tenant_comes_from_the_argument_the_environment_or_the_login(monkeypatch: pytest.MonkeyPatch) -> None:
    login.store(Login(HERE, "token", tenant="stored"))
    assert login.find("127.0.0.1:1").tenant == "stored"
    assert login.find("127.0.0.1:1", "another-token").tenant == ""
    monkeypatch.setenv("TRIMTAB_TENANT", "environment")
    assert login.find("127.0.0.1:1").tenant == "environment"
    assert login.find("127.0.0.1:1", tenant="argument").tenant == "argument"


def test_a_file_of_an_earlier_version_is_read(home: Path) -> None:
    path = home / "trimtab" / "credentials.json"
    path.parent.mkdir()
    path.write_text('{"default": "127.0.0.1:1", "tokens": {"127.0.0.1:1": "old-token"}}')
    assert login.find() == Login(HERE, "old-token")


KEYRING = """
import json, os, pathlib
from keyring.backend import KeyringBackend

class Ring(KeyringBackend):
    priority = 5
    path = pathlib.Path(os.environ["RING_FILE"])
    def read(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}
    def set_password(self, service, name, secret):
        if os.environ.get("RING_LOCKED"):
            raise RuntimeError("locked")
        self.path.write_text(json.dumps({**self.read(), f"{service} {name}": secret}))
    def get_password(self, service, name):
        return self.read().get(f"{service} {name}")
    def delete_password(self, service, name):
        kept = self.read()
        del kept[f"{service} {name}"]
        self.path.write_text(json.dumps(kept))
"""


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A keyring, which the package `keyring` finds."""
    (tmp_path / "a_keyring_of_the_test.py").write_text(KEYRING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "a_keyring_of_the_test.Ring")
    monkeypatch.setenv("RING_FILE", str(tmp_path / "ring.json"))
    import keyring.core

    keyring.core.init_backend()
    yield tmp_path / "ring.json"
    monkeypatch.undo()
    sys.modules.pop("a_keyring_of_the_test", None)
    keyring.core.init_backend()


def test_secrets_are_in_the_keyring_where_there_is_one(
    ring: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert login.store(Login(HERE, session=provider.session(expires_in=-1), tenant="acme")) == "the system's keyring"
    kept = login.location().read_text()
    assert "access-0" not in kept
    assert "refresh-0" not in kept
    assert "refresh-0" in ring.read_text()
    assert login.renewed(login.find("127.0.0.1:1"), oidc.renew).tenant == "acme"
    assert "refresh-1" in ring.read_text()
    assert "refresh-1" not in login.location().read_text()
    login.forget(HERE)
    assert ring.read_text() == "{}"
    # One that does not take it is no reason not to log in.
    monkeypatch.setenv("RING_LOCKED", "1")
    assert login.store(Login(HERE, "token")) == str(login.location())
    assert login.find("127.0.0.1:1").token == "token"


def test_the_error_for_a_missing_keyring_gives_instructions(ring: Path) -> None:
    login.store(Login(HERE, "token"))
    ring.unlink()
    with pytest.raises(InvalidInput, match="trimtab login"):
        login.find("127.0.0.1:1")
