"""`trimtab login`, `logout` and `whoami`, against a real service."""

import json
from pathlib import Path

from tests.factories.service import EmbeddedService
from tests.sdk.cli.shell import Shell
from trimtab.study import Study


def test_login_checks_the_token_and_keeps_it(embedded_service: EmbeddedService, tmp_path: Path, study: Study) -> None:
    shell = Shell(tmp_path)
    assert "trimtab login" in shell.fail("study", "list")
    refused = shell.fail("login", embedded_service.grpc_address, "--token", "wrong")
    assert refused.startswith("error: ")
    assert "[invalid_token]" in refused
    assert not (tmp_path / "trimtab").exists()
    token_file = str(embedded_service.data_dir / "admin-token")
    run = shell.run("login", embedded_service.grpc_address, "--token-file", token_file)
    path = tmp_path / "trimtab" / "credentials.json"
    reported = (
        f"Logged in to {embedded_service.grpc_address} as administrator, operator of default; stored in {path}.\n"
    )
    assert run.stderr == reported
    assert path.stat().st_mode & 0o777 == 0o600
    assert study.name in shell.succeed("study", "list")
    assert embedded_service.token not in run.stdout + run.stderr


def test_login_reads_the_token_from_standard_input(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    run = Shell(tmp_path).run(
        "login", f"grpc://{embedded_service.grpc_address}", "--token-file", "-", stdin=embedded_service.token + "\n"
    )
    assert run.returncode == 0, run.stderr


def test_the_console_s_address_is_recognised(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    address = embedded_service.http_url.removeprefix("http://")
    reported = Shell(tmp_path, TRIMTAB_URL=address, TRIMTAB_TOKEN=embedded_service.token).fail("study", "list")
    assert "A web server answers at this address, perhaps the console. Use the port of gRPC" in reported


def test_login_without_a_token_is_a_usage_error(tmp_path: Path, programs_start: None) -> None:
    assert "--token-file" in Shell(tmp_path).fail("login", "127.0.0.1:1", code=2)
    unreadable = Shell(tmp_path).fail("login", "--token-file", "nowhere", code=2)
    assert "nowhere cannot be read: No such file" in unreadable
    assert "HOST:PORT" in Shell(tmp_path).fail("login", "http://127.0.0.1:8470", "--token", "t")


def test_a_service_that_is_not_there_is_one_line(tmp_path: Path, programs_start: None) -> None:
    error = Shell(tmp_path).fail("login", "127.0.0.1:1", "--token", "t")
    assert "error: The service at 127.0.0.1:1 did not answer for" in error


def test_whoami_shows_the_identity_until_logout(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.succeed("login", embedded_service.grpc_address, "--token", embedded_service.token)
    shown = shell.succeed("whoami")
    assert "administrator at " in shown
    assert "tenant default, role operator, credential administrator-token" in shown
    assert json.loads(shell.succeed("whoami", "--json"))["role"] == "operator"
    assert "Logged out" in shell.run("logout").stderr
    assert embedded_service.token not in (tmp_path / "trimtab" / "credentials.json").read_text()
    assert "missing_token" in shell.fail("whoami")
    assert "not logged in" in shell.run("logout").stderr
