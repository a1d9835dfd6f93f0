"""`trimtab-service up` as its user meets it: start, stop, crashes, mistakes."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

import trimtab
from service.main import app
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port
from tests.factories.service import EmbeddedService, lives
from trimtab.study import Study

NAMES = {"postgres", "web", "grpc", "worker", "beat"}


def answers(service: EmbeddedService) -> bool:
    """Return whether REST, gRPC and the database answer."""
    try:
        with urllib.request.urlopen(f"{service.http_url}/readyz", timeout=30):
            pass
        with trimtab.Client(service.grpc_address, token=service.token, retry_seconds=1) as client:
            client.list_studies()
    except (OSError, trimtab.TrimtabError):
        return False
    return True


def all_run(service: EmbeddedService) -> bool:
    return set(service.processes()) == NAMES


def make_study(service: EmbeddedService, name: str) -> Study:
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        return client.create_study(
            name, space=[trimtab.Float("x", 0, 1)], objectives=[trimtab.Minimize("y")], algorithm="random"
        )


def study_names(service: EmbeddedService) -> set[str]:
    with trimtab.Client(service.grpc_address, token=service.token) as client:
        return {study.name for study in client.list_studies()}


def test_says_where_it_is_and_keeps_its_secrets(embedded_service: EmbeddedService) -> None:
    wait_for(lambda: answers(embedded_service), "all answers")
    wait_for(lambda: all_run(embedded_service), f"all of {NAMES} run")
    assert embedded_service.output.count("ready ") == 1
    for name in ("admin-token", "secret-key"):
        assert (embedded_service.data_dir / name).stat().st_mode & 0o777 == 0o600
    assert len(embedded_service.token) >= 32


def test_listens_on_loopback_alone(embedded_service: EmbeddedService) -> None:
    listening = set()
    for process in embedded_service.tree():
        with suppress(psutil.NoSuchProcess):  # PostgreSQL's come and go
            for connection in process.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    # an IPv4 address as IPv6 writes it
                    listening.add(connection.laddr.ip.removeprefix("::ffff:"))
    assert listening == {"127.0.0.1"}


def test_second_service_on_the_same_data_is_refused(embedded_service: EmbeddedService) -> None:
    done = subprocess.run(embedded_service.command(), capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert f"is in use by the service that runs as process {embedded_service.pid}" in done.stderr
    assert "Traceback" not in done.stderr
    wait_for(lambda: answers(embedded_service), "the first one answers")


def test_another_service_on_its_port_is_not_announced(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    for name in ("admin-token", "secret-key"):
        (tmp_path / name).write_text("another-service's\n")
    found = json.loads((embedded_service.data_dir / "service.json").read_text())
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "service.config.settings.embedded",
        "TRIMTAB_DATA_DIR": str(tmp_path),
        "DATABASE_URL": found["database_url"],
    }
    command = [sys.executable, "-m", "service.embedded.announce", found["console"], found["grpc"]]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Another service uses {found['console']}.")
    assert "ready" not in done.stdout


def test_taken_port_is_named(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    port = embedded_service.http_url.rpartition(":")[2]
    argv = [sys.executable, "-m", "service.main", "up", "--data-dir", str(tmp_path), "--port", port, "--grpc-port", "0"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert f"Port {port} of 127.0.0.1 cannot be used" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


def test_new_login_link(embedded_service: EmbeddedService, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "service.main", "login-link", "--data-dir"]
    done = subprocess.run([*argv, str(embedded_service.data_dir)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{embedded_service.http_url}/login?code=")
    assert done.stdout.strip() != embedded_service.login_url
    refused = subprocess.run([*argv, str(tmp_path)], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert str(tmp_path) in refused.stderr


def test_survives_the_death_of_each_part_and_stops(own_service: EmbeddedService) -> None:
    service = own_service.start()
    token = service.token
    make_study(service, "kept")
    wait_for(lambda: all_run(service), "all run")
    for name in ("web", "grpc", "worker", "beat", "postgres"):
        victim = service.processes()[name]
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda n=name, v=victim: service.processes().get(n, v) != v, f"{name} is started again")  # type: ignore[misc]
        wait_for(lambda: answers(service), f"all answers after the death of {name}")
    assert study_names(service) == {"kept"}

    # Ctrl-Z and fg.
    service.send(signal.SIGSTOP)
    wait_for(lambda: psutil.Process(service.pid).status() == psutil.STATUS_STOPPED, "the supervisor is stopped")
    service.send(signal.SIGCONT)
    wait_for(lambda: answers(service) and all_run(service), "all answers after a stop")

    # The supervisor itself: everything dies with it, and the next start goes on with the data.
    service.kill()
    (service.data_dir / "broker" / "00000000000000000001_left.compute.msg").write_text('{"half": ')
    service.start()
    assert service.token == token
    assert study_names(service) == {"kept"}

    wait_for(lambda: all_run(service), "all run")
    tree = service.tree()
    service.send(signal.SIGINT)
    service.send(signal.SIGINT)
    time.sleep(0.2)
    service.send(signal.SIGINT)
    assert service.wait() == 0
    assert not [process for process in tree if lives(process)]
    assert not (service.data_dir / "service.json").exists()


@pytest.mark.slow("starts a service ten times; the death of each part shows the stop")
def test_stops_at_any_moment_of_its_start(tmp_path: Path, programs_start: None) -> None:
    data = tmp_path / "data"
    argv = [sys.executable, "-m", "service.main", "up", "--data-dir", str(data), "--port", "0", "--grpc-port", "0"]
    for moment in (0.3, 1.5, 3.0):
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as popen:
            time.sleep(moment)
            tree = [psutil.Process(popen.pid), *psutil.Process(popen.pid).children(recursive=True)]
            popen.send_signal(signal.SIGTERM)
            popen.communicate(timeout=PATIENCE)
        # the kernel may still be about ending what was killed
        _, left = psutil.wait_procs(tree, timeout=PATIENCE)
        assert not left, f"left after {moment} s"
    # and what was half made is no obstacle
    service = EmbeddedService(data).start()
    try:
        wait_for(lambda: answers(service), "all answers")
        tree = service.tree()
        service.send(signal.SIGTERM)
        assert service.wait() == 0
        assert not [process for process in tree if lives(process)]
    finally:
        service.__exit__()


def test_a_stop_ends_open_streams_and_held_calls(own_service: EmbeddedService) -> None:
    service = own_service.start()
    make_study(service, "watched")
    client = trimtab.Client(service.grpc_address, token=service.token, retry_seconds=0)
    changes = iter(client.get_study("watched").watch())
    next(changes)
    request = urllib.request.Request(
        f"{service.http_url}/api/v1/studies/watched/events", headers={"Authorization": f"Bearer {service.token}"}
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as stream:
        assert stream.readline()
        service.send(signal.SIGTERM)
        assert service.wait() == 0
    # Neither process had to be killed.
    with pytest.raises(trimtab.errors.Unavailable, match="The service is stopping"):
        next(changes)
    assert "Finished server process" in (service.data_dir / "logs" / "web.log").read_text()
    client.close()


def test_unwritable_data_folder_is_named(tmp_path: Path, programs_start: None) -> None:
    (tmp_path / "file").write_text("")
    argv = [sys.executable, "-m", "service.main", "up", "--data-dir", str(tmp_path / "file" / "data")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == 1
    assert f"The data folder {tmp_path / 'file' / 'data'} cannot be used" in done.stderr


def test_help_has_examples() -> None:
    for command in ("up", "web", "grpc", "worker", "beat", "migrate", "login-link"):
        assert "Example" in CliRunner().invoke(app, [command, "--help"]).output


def test_a_hosted_process_names_its_missing_settings(programs_start: None) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TRIMTAB_", "DJANGO_"))}
    environment["DATABASE_URL"] = f"postgresql://127.0.0.1:{free_port()}/trimtab"
    environment.pop("CELERY_BROKER_URL", None)
    for command in ("web", "worker"):
        argv = [sys.executable, "-m", "service.main", command]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
        assert done.returncode == 2
        assert "CELERY_BROKER_URL" in done.stderr
        assert "TRIMTAB_SECRET_KEY" in done.stderr
        assert "DATABASE_URL" not in done.stderr
        assert "Traceback" not in done.stderr
