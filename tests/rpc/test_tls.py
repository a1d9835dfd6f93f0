"""The gRPC port beyond loopback: certificates of its own, those of clients, and new ones without a restart."""

import subprocess
import sys
from pathlib import Path

import grpc
import pytest
import trustme
from grpc_health.v1 import health_pb2, health_pb2_grpc

from service.platform.addresses import is_loopback
from tests.agent.conftest import BASIC, AgentProcess
from tests.factories.grpc_service import GrpcService
from tests.factories.patience import PATIENCE, wait_for


class Files:
    """An authority and what it has issued, as an operator lays it down."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key, self.ca = folder / "tls.crt", folder / "tls.key", folder / "ca.crt"
        self.client_certificate, self.client_key = folder / "client.crt", folder / "client.key"
        self.issue()

    def issue(self) -> None:
        """A new authority, and new certificates in place of the old."""
        authority = trustme.CA()
        server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("agent")
        authority.cert_pem.write_to_path(str(self.ca))
        server.private_key_pem.write_to_path(str(self.key))
        server.cert_chain_pems[0].write_to_path(str(self.certificate))
        client.private_key_pem.write_to_path(str(self.client_key))
        client.cert_chain_pems[0].write_to_path(str(self.client_certificate))

    @property
    def options(self) -> list[str]:
        return ["--tls-cert", str(self.certificate), "--tls-key", str(self.key)]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def answers(address: str, credentials: grpc.ChannelCredentials | None) -> bool:
    """Return whether the port answers a new connection."""
    channel = grpc.insecure_channel(address) if credentials is None else grpc.secure_channel(address, credentials)
    with channel:
        try:
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        except grpc.RpcError:
            return False
        return True


def test_it_is_encrypted_and_takes_new_certificates_without_a_restart(
    own_grpc_service: GrpcService, files: Files
) -> None:
    service = own_grpc_service
    restart(service, files.options)
    old = grpc.ssl_channel_credentials(files.ca.read_bytes())
    wait_for(lambda: answers(service.address, old))
    assert not answers(service.address, None)
    files.issue()
    new = grpc.ssl_channel_credentials(files.ca.read_bytes())
    assert answers(service.address, new)
    assert not answers(service.address, old)
    # half of a file, as one who writes it slowly leaves it for a moment, changes nothing
    files.certificate.write_bytes(files.certificate.read_bytes()[:300])
    assert answers(service.address, new)


def test_clients_have_to_show_a_certificate_where_that_is_asked_for(
    own_grpc_service: GrpcService, files: Files
) -> None:
    service = own_grpc_service
    restart(service, [*files.options, "--tls-client-ca", str(files.ca)])
    roots = files.ca.read_bytes()
    known = grpc.ssl_channel_credentials(roots, files.client_key.read_bytes(), files.client_certificate.read_bytes())
    wait_for(lambda: answers(service.address, known))
    assert not answers(service.address, grpc.ssl_channel_credentials(roots))
    other = trustme.CA().issue_cert("agent")
    stranger = grpc.ssl_channel_credentials(roots, other.private_key_pem.bytes(), other.cert_chain_pems[0].bytes())
    assert not answers(service.address, stranger)


def test_an_agent_connects_with_a_certificate_of_its_own(
    own_grpc_service: GrpcService, files: Files, tmp_path: Path
) -> None:
    restart(own_grpc_service, [*files.options, "--tls-client-ca", str(files.ca)])
    agent = AgentProcess(tmp_path, own_grpc_service.port, token="rpc-test-token")
    agent.components.mkdir()
    (agent.components / "basic.yaml").write_text(BASIC)
    own = ["--tls-cert", str(files.client_certificate), "--tls-key", str(files.client_key)]
    agent.start("--tls-ca", str(files.ca), *own)
    try:
        wait_for(lambda: "ready agent=tested" in agent.log)
        agent.stop()
    finally:
        agent.clear_away()


def test_an_agent_reports_a_tls_mismatch_and_keeps_trying_to_connect(
    own_grpc_service: GrpcService, files: Files, tmp_path: Path
) -> None:
    agent = AgentProcess(tmp_path, own_grpc_service.port, token="rpc-test-token")
    agent.components.mkdir()
    (agent.components / "basic.yaml").write_text(BASIC)
    try:
        agent.start("--tls-ca", str(files.ca))
        wait_for(lambda: "does not use TLS: check --server, or use --plaintext" in agent.log)
        # it goes on trying: a service that is set right is found
        restart(own_grpc_service, files.options)
        wait_for(lambda: "ready agent=tested" in agent.log)
        agent.stop()
    finally:
        agent.clear_away()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "Use --tls-cert and --tls-key, or --plaintext"),
        (["--tls-cert", "x"], "--tls-cert and --tls-key need each other"),
        (["--tls-client-ca", "x"], "--tls-client-ca needs both"),
        (["--tls-cert", "x", "--tls-key", "x", "--plaintext"], "--plaintext contradicts --tls-cert"),
        (["--tls-cert", "/none", "--tls-key", "/none"], "a file of the certificate cannot be read"),
    ],
)
def test_an_unusable_tls_set_up_is_reported(grpc_service: GrpcService, options: list[str], words: str) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "service.main", "grpc", "--port", "1", *options],
        env=grpc_service.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode in (1, 2)
    assert words in run.stderr


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), ("localhost", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "10.0.0.5", "", "example.org")],
)
def test_loopback_addresses(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def restart(service: GrpcService, options: list[str]) -> None:
    """The same service, on the same port, with these options."""
    service.stop()
    service.process = subprocess.Popen(
        [sys.executable, "-m", "service.main", "grpc", "--port", str(service.port), *options], env=service.environment
    )
