"""`trimtab-service doctor` finds each fault that a deployment can have, by the fault itself."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from service.embedded.processes import stop
from tests.factories.clock import Clock
from tests.factories.hosted import Hosted, hosted_service
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import EmbeddedService, lack, redis_server

LINES = ("settings", "database", "migrations", "tenants", "clock", "broker", "beat", "workers", "console", "grpc")


def examine(environment: Mapping[str, str], *words: object) -> tuple[int, dict[str, dict[str, str]]]:
    """Run the command; return its exit status and its findings by check."""
    command = [sys.executable, "-m", "service.main", "doctor", "--json", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert "Traceback" not in done.stderr, done.stderr
    found = {line["check"]: line for line in map(json.loads, done.stdout.splitlines())}
    for finding in found.values():
        assert (finding["remedy"] == "") == (finding["level"] == "ok")
    return done.returncode, found


def problem(environment: Mapping[str, str], check: str, *words: object) -> str:
    """Return the text of a check, which must be a problem."""
    code, found = examine(environment, *words)
    assert code == 1
    assert found[check]["level"] == "problem", found[check]
    return found[check]["text"]


@pytest.fixture
def outside() -> dict[str, str]:
    """Return an environment that describes no deployment."""
    return {name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}


def test_a_healthy_service_has_no_problem(embedded_service: EmbeddedService, outside: dict[str, str]) -> None:
    words = ("--data-dir", embedded_service.data_dir)
    wait_for(lambda: examine(outside, *words)[0] == 0, "all processes have started")
    code, found = examine(outside, *words)
    assert code == 0
    assert {name: line["level"] for name, line in found.items() if name != "disk"} == dict.fromkeys(
        [*LINES, "data folder", "certificates", "sign-in"], "ok"
    )
    command = [sys.executable, "-m", "service.main", "doctor", *map(str, words)]
    shown = subprocess.run(command, env=outside, capture_output=True, text=True, check=True).stdout
    assert shown.startswith("ok       settings      service.config.settings.embedded is complete\n")


def test_a_folder_that_others_may_open(embedded_service: EmbeddedService, outside: dict[str, str]) -> None:
    token = embedded_service.data_dir / "admin-token"
    token.chmod(0o644)
    try:
        text = problem(outside, "data folder", "--data-dir", embedded_service.data_dir)
    finally:
        token.chmod(0o600)
    assert text == f"other users of this machine may open {token}"


def test_a_disk_that_is_full(embedded_service: EmbeddedService, outside: dict[str, str]) -> None:
    """The folder of a service, with its secrets, on a file system of 64 MiB."""
    with tempfile.TemporaryDirectory(prefix="trimtab-disk-") as name:
        mount = ["mount", "-t", "tmpfs", "-o", "size=64m,mode=700", "none", name]
        if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            lack("this user may mount nothing")
        try:
            for file in ("admin-token", "secret-key", "service.json"):
                shutil.copy2(embedded_service.data_dir / file, name)
            (Path(name) / "postgres").mkdir(mode=0o700)
            assert "64 MiB are free" in problem(outside, "disk", "--data-dir", name)
        finally:
            subprocess.run(["umount", "--lazy", name], check=True)


def test_a_service_that_does_not_run(outside: dict[str, str], tmp_path: Path, programs_start: None) -> None:
    assert problem(outside, "service", "--data-dir", tmp_path) == f"no service runs with the data folder {tmp_path}"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis: str) -> Iterator[Hosted]:
    """A deployment without a worker."""
    key = {"TRIMTAB_SECRET_KEY": "0123456789abcdef" * 4}
    with hosted_service(tmp_path_factory.mktemp("hosted"), redis, key) as made:
        wait_for(lambda: examine(made.environment)[1]["beat"]["level"] == "ok", "beat has started")
        yield made


def at(hosted: Hosted) -> tuple[str, ...]:
    return ("--console", hosted.http_url, "--grpc", hosted.grpc_address)


@contextmanager
def changed(hosted: Hosted, statement: str, back: str) -> Iterator[None]:
    hosted.execute(statement)
    try:
        yield
    finally:
        hosted.execute(back)


def test_a_hosted_service_without_a_worker(hosted: Hosted) -> None:
    code, found = examine(hosted.environment, *at(hosted))
    assert code == 1
    assert {name: line["level"] for name, line in found.items()} == {
        **dict.fromkeys([*LINES, "certificates", "sign-in"], "ok"),
        "workers": "problem",
    }
    assert "start one: trimtab-service worker" in found["workers"]["remedy"]


def test_an_address_that_was_not_given(hosted: Hosted) -> None:
    _, found = examine(hosted.environment)
    assert found["console"]["level"] == found["grpc"]["level"] == "warning"


def test_settings_that_are_missing_or_weak(hosted: Hosted) -> None:
    without = {**hosted.environment, "CELERY_BROKER_URL": ""}
    assert "CELERY_BROKER_URL: the address of the broker" in problem(without, "settings")
    _, found = examine({**hosted.environment, "TRIMTAB_SECRET_KEY": "short"})
    assert found["settings"]["level"] == "warning"


def test_a_database_that_refuses(hosted: Hosted) -> None:
    port = free_port()
    environment = {**hosted.environment, "DATABASE_URL": f"postgresql://someone:hidden@127.0.0.1:{port}/trimtab"}
    code, found = examine(environment)
    assert code == 1
    assert f"127.0.0.1:{port}/trimtab does not answer" in found["database"]["text"]
    for name in ("migrations", "tenants", "clock", "workers"):
        assert found[name]["text"] == "not checked, because the database has a problem"
    assert "hidden" not in json.dumps(found)


def test_servers_that_accept_and_never_answer(hosted: Hosted) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=50) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        environment = {
            **hosted.environment,
            "DATABASE_URL": f"postgresql://someone@{address}/trimtab",
            "CELERY_BROKER_URL": f"redis://{address}/0",
            "TRIMTAB_OIDC_ISSUER": f"http://{address}/realms/trimtab",
        }
        code, found = examine(environment, "--console", f"http://{address}", "--grpc", address, "--timeout", "2")
    assert code == 1
    for name in ("database", "broker", "console", "grpc", "sign-in"):
        assert found[name]["level"] == "problem", found[name]


def test_migrations_that_differ(hosted: Hosted) -> None:
    rename = "UPDATE django_migrations SET name = '{}' WHERE app = 'fleet' AND name = '{}'"
    first, later = "0005_component_files", "9999_later"
    with changed(hosted, rename.format(later, first), rename.format(first, later)):
        assert "1 migrations are not applied, the first is fleet.0005" in problem(hosted.environment, "migrations")
    add = f"INSERT INTO django_migrations (app, name, applied) VALUES ('fleet', '{later}', now())"
    with changed(hosted, add, f"DELETE FROM django_migrations WHERE name = '{later}'"):
        assert f"fleet.{later}, which this version does not know" in problem(hosted.environment, "migrations")


def test_rows_that_are_not_protected(hosted: Hosted) -> None:
    table = "ALTER TABLE studies_study {} ROW LEVEL SECURITY"
    with changed(hosted, table.format("NO FORCE"), table.format("FORCE")):
        assert "'studies_study' is not forced" in problem(hosted.environment, "tenants")
    role = "ALTER ROLE trimtab_service {}"
    with changed(hosted, role.format("BYPASSRLS"), role.format("NOBYPASSRLS")):
        assert "has BYPASSRLS" in problem(hosted.environment, "tenants")


def test_a_clock_that_is_wrong(hosted: Hosted) -> None:
    clock = Clock()
    try:
        clock.set(3600)
        text = problem({**hosted.environment, **clock.variables}, "clock")
    finally:
        clock.close()
    assert "differ by 3600" in text or "differ by 3599" in text


def test_an_identity_provider_that_is_away(hosted: Hosted) -> None:
    issuer = f"http://127.0.0.1:{free_port()}/realms/trimtab"
    assert issuer in problem({**hosted.environment, "TRIMTAB_OIDC_ISSUER": issuer}, "sign-in")


def test_certificates_that_end(hosted: Hosted, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    def served(days: int) -> tuple[str, dict[str, str]]:
        until = datetime.now(UTC) + timedelta(days=days, hours=1)
        with https_server(authority.issue_cert("127.0.0.1", not_after=until)) as url:
            _, found = examine(hosted.environment, "--console", url, "--tls-ca", tmp_path / "ca.pem")
        return found["console"]["level"], found["certificates"]

    reachable, valid = served(100)
    assert (reachable, valid["level"]) == ("ok", "ok")
    assert "is valid for 100 more days" in valid["text"]
    reachable, soon = served(3)
    assert (reachable, soon["level"]) == ("ok", "warning")
    assert "is valid for 3 more days" in soon["text"]
    reachable, expired = served(-1)
    assert (reachable, expired["level"]) == ("problem", "problem")
    assert "has expired on" in expired["text"]

    file = tmp_path / "cert.pem"
    authority.issue_cert("x", not_after=datetime.now(UTC) - timedelta(days=1)).cert_chain_pems[0].write_to_path(
        str(file)
    )
    assert f"the certificate of {file} has expired" in problem(hosted.environment, "certificates", "--tls-cert", file)


class _Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def https_server(certificate: trustme.LeafCert) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ready) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_processes_that_are_gone(hosted: Hosted, redis: str) -> None:
    """These are the last tests of this deployment: its processes end one after the other."""
    for name in ("beat", "web", "grpc"):
        stop([hosted.processes[name]])
    code, found = examine(hosted.environment, *at(hosted))
    assert code == 1
    assert "beat does not take its tasks" in found["beat"]["text"]
    for name, address in (("console", hosted.http_url), ("grpc", hosted.grpc_address)):
        assert address in found[name]["text"]
        assert "does not answer" in found[name]["text"]


def test_a_broker_that_is_away(hosted: Hosted) -> None:
    environment = {**hosted.environment, "CELERY_BROKER_URL": f"redis://:hidden@127.0.0.1:{free_port()}/0"}
    code, found = examine(environment)
    assert code == 1
    assert "does not answer" in found["broker"]["text"]
    assert "hidden" not in json.dumps(found)
    assert found["beat"]["text"] == "not checked, because the broker has a problem"
