"""Which connections are encrypted, whose certificates are believed, and what is said where the two sides disagree."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import trustme

import trimtab
from tests.factories.patience import PATIENCE
from tests.factories.ports import free_port
from tests.sdk.far_side import FarSide, serve
from trimtab._gen import tuning_pb2 as pb
from trimtab._gen import tuning_pb2_grpc
from trimtab._internal.connection import login
from trimtab._internal.connection.login import Address, Login
from trimtab.errors import Insecure, InvalidInput, Unavailable


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("TRIMTAB_URL", "TRIMTAB_TOKEN", "TRIMTAB_TLS_CA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@dataclass(frozen=True)
class Secured:
    """A service that encrypts: by a certificate for 127.0.0.1, and by one for another name."""

    target: str
    misnamed: str
    ca: str


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    authority = trustme.CA()
    ca = tmp_path_factory.mktemp("tls") / "ca.crt"
    authority.cert_pem.write_to_path(str(ca))
    far = FarSide()
    far.answers_from(iter(lambda: pb.ListStudiesResponse(), None))
    with encrypting(far, authority, "127.0.0.1") as port, encrypting(far, authority, "other.example") as other:
        yield Secured(f"127.0.0.1:{port}", f"127.0.0.1:{other}", str(ca))


@contextmanager
def encrypting(far: FarSide, authority: trustme.CA, name: str, port: int = 0) -> Iterator[int]:
    issued = authority.issue_cert(name)
    pair = (issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes())
    server = grpc.server(ThreadPoolExecutor(2))
    tuning_pb2_grpc.add_TuningServiceServicer_to_server(far, server)  # type: ignore[arg-type]
    port = server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([pair]))
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait()


def reaches(*arguments: str, **keywords: object) -> bool:
    """Return whether a call succeeds; raise its error."""
    with trimtab.Client(*arguments, retry_seconds=0.0, **keywords) as client:  # type: ignore[arg-type]
        return client.list_studies() == []


@pytest.mark.parametrize(
    ("text", "target", "secure"),
    [
        ("tune.example.org", "tune.example.org:8471", True),
        ("10.0.0.5:1", "10.0.0.5:1", True),
        ("[2001:db8::1]:1", "[2001:db8::1]:1", True),
        ("0.0.0.0:1", "0.0.0.0:1", True),
        ("localhost", "localhost:8471", False),
        ("127.0.0.1:5", "127.0.0.1:5", False),
        ("127.8.8.8:5", "127.8.8.8:5", False),
        ("[::1]:5", "[::1]:5", False),
        ("localhost.example.org:5", "localhost.example.org:5", True),
        (" grpc://host:1/ ", "host:1", False),
        ("grpcs://127.0.0.1", "127.0.0.1:8471", True),
    ],
)
def test_tls_is_used_for_other_machines_by_default(text: str, target: str, secure: bool) -> None:
    address = Address.parse(text)
    assert address == Address(target, secure)
    assert Address.parse(str(address)) == address


def test_options_override_the_default_encryption_and_contradictions_are_refused() -> None:
    assert Address.parse("host:1", plaintext=True) == Address("host:1", False)
    assert Address.parse("grpc://host:1", plaintext=True) == Address("host:1", False)
    assert Address.parse("localhost:1", tls=True) == Address("localhost:1", True)
    for text, options, field in (
        ("grpcs://host:1", {"plaintext": True}, "plaintext"),
        ("host:1", {"plaintext": True, "tls": True}, "plaintext"),
        ("grpc://host:1", {"tls": True}, "ca"),
    ):
        with pytest.raises(InvalidInput) as caught:
            Address.parse(text, **options)
        assert caught.value.data["field"] == field


def test_a_private_authority_comes_from_argument_environment_or_login(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    assert reaches(secured.target, "t", ca=secured.ca)
    address = f"grpcs://{secured.target}"
    with pytest.raises(Insecure) as caught:
        reaches(address, "t")
    assert caught.value.code == "untrusted_certificate"
    assert f"trimtab login {address} --tls-ca FILE" in caught.value.message
    monkeypatch.setenv("TRIMTAB_TLS_CA", secured.ca)
    assert reaches(address, "t")
    monkeypatch.delenv("TRIMTAB_TLS_CA")
    monkeypatch.chdir(Path(secured.ca).parent)
    login.store(Login(Address.parse(address), "t", ca="ca.crt"))
    monkeypatch.chdir("/")
    assert reaches()


def test_the_environments_authority_leaves_this_machines_service_alone(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMTAB_TLS_CA", secured.ca)
    far = FarSide()
    far.answers(pb.ListStudiesResponse())
    with serve(far):
        assert reaches(far.address, "t")


def test_a_certificate_for_another_name_is_refused(secured: Secured) -> None:
    with pytest.raises(Insecure, match="for another name") as caught:
        reaches(secured.misnamed, "t", ca=secured.ca)
    assert caught.value.code == "wrong_certificate"


def test_an_unencrypted_service_raises_an_error_and_gets_no_token(secured: Secured) -> None:
    far = FarSide()
    with serve(far):
        # at once: two minutes of repetition would not help
        with trimtab.Client(f"grpcs://{far.address}", "t", ca=secured.ca) as client, pytest.raises(Insecure) as caught:
            client.list_studies()
        assert caught.value.code == "not_encrypted"
        assert f"grpc://{far.address}, plaintext=True or --plaintext" in caught.value.message
        assert not far.calls
        assert not far.tokens


def test_a_service_that_encrypts_though_the_caller_does_not(secured: Secured) -> None:
    with pytest.raises(Unavailable, match=f"If it uses TLS, use grpcs://{secured.target}"):
        reaches(secured.target, "t")


@pytest.mark.parametrize("content", [None, "", "no certificate"])
def test_a_file_without_certificates_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.crt"
    if content is not None:
        path.write_text(content)
    with pytest.raises(InvalidInput) as caught:
        reaches("host:1", "t", ca=str(path))
    assert (caught.value.data["field"], caught.value.data["value"]) == ("ca", str(path))


def test_a_connection_that_has_worked_is_tried_again_over_a_wrong_certificate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A service that comes back with another certificate for a moment does not end a long study."""
    authority, far = trustme.CA(), FarSide()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    far.answers_from(iter(lambda: pb.ListStudiesResponse(), None))
    with encrypting(far, authority, "127.0.0.1", free_port()) as port:
        client = trimtab.Client(f"127.0.0.1:{port}", "t", ca=str(tmp_path / "ca.crt"), retry_seconds=1.0)
        client.list_studies()
    with client, encrypting(far, trustme.CA(), "127.0.0.1", port), pytest.raises(Insecure):
        client.list_studies()
    assert "trying again" in caplog.text


def test_the_command_line(secured: Secured, home: Path, programs_start: None) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-c", "from trimtab.cli.main import app; app(prog_name='trimtab')", *arguments]
        return subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)

    refused = run("login", f"grpcs://{secured.target}", "--token", "t")
    assert refused.returncode == 1
    assert "[untrusted_certificate]" in refused.stderr
    # one line, with nothing of gRPC's own between
    assert len(refused.stderr.strip().splitlines()) == 1, refused.stderr
    refused = run("login", f"grpcs://{secured.target}", "--plaintext", "--token", "t")
    assert "plaintext: True" in refused.stderr
