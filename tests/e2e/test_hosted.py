"""The spine in hosted mode: PostgreSQL over TCP, Redis, and each process on its own, configured by the environment."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

import trimtab
from service.embedded.processes import Child, stop
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.service import free_port, postgres_server, wait_for

TOKEN = "hosted-token"


@dataclass
class Hosted:
    """The processes by name, and where they answer."""

    http_url: str
    grpc_address: str
    processes: dict[str, Child] = field(default_factory=dict)


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Hosted]:
    folder = tmp_path_factory.mktemp("hosted")
    port = str(free_port())
    with postgres_server(folder, {"listen_addresses": "127.0.0.1", "port": port}) as server:
        server.ensure_database("trimtab")
        with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
            connection.execute("ALTER ROLE postgres PASSWORD 'hosted'")
        environment = {
            **os.environ,
            "DATABASE_URL": f"postgresql://postgres:hosted@127.0.0.1:{port}/trimtab",
            "CELERY_BROKER_URL": redis_url,
            "TRIMTAB_SECRET_KEY": "hosted-secret",
            "TRIMTAB_ADMIN_TOKEN": TOKEN,
        }
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        http, grpc = str(free_port()), str(free_port())
        service = [sys.executable, "-m", "service.main"]
        subprocess.run([*service, "migrate"], env=environment, check=True, capture_output=True)
        hosted = Hosted(f"http://127.0.0.1:{http}", f"127.0.0.1:{grpc}")
        arguments = {
            "web": ["web", "--port", http],
            "grpc": ["grpc", "--port", grpc],
            "worker-1": ["worker"],
            "worker-2": ["worker"],
            "beat": ["beat"],
        }
        for name, words in arguments.items():
            child = Child(name, [*service, *words], environment, folder / f"{name}.log")
            child.start()
            hosted.processes[name] = child
        try:
            wait_for(lambda: readyz(hosted) == 200, 60, "the web process is ready")
            yield hosted
        finally:
            stop(list(hosted.processes.values()))


@pytest.fixture
def client(hosted: Hosted) -> Iterator[trimtab.Client]:
    with trimtab.Client(hosted.grpc_address, token=TOKEN) as client:
        yield client


def readyz(hosted: Hosted) -> int:
    try:
        with urllib.request.urlopen(f"{hosted.http_url}/readyz", timeout=5) as answer:
            return int(answer.status)
    except OSError:
        return 0


@pytest.mark.timeout(240)
def test_ask_and_tell_with_a_costly_designer(client: trimtab.Client) -> None:
    study = client.create_study(
        "hosted-gp",
        space=[trimtab.Float("x", -10, 10), trimtab.Bool("flag")],
        objectives=[trimtab.Minimize("y")],
        algorithm="gp",
        seed=0,
    )
    for _ in range(5):
        for trial in study.ask(3, timeout=120):
            study.tell(trial, (float(trial.params["x"]) - 2) ** 2 + float(trial.params["flag"]))
    assert [trial.state for trial in study.trials()] == ["COMPLETED"] * 15
    assert study.best_trial.metrics["y"] < 4


@pytest.mark.timeout(240)
def test_study_on_an_agent_while_a_worker_is_killed(hosted: Hosted, client: trimtab.Client, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    components = write_component(tmp_path / "components", tmp_path / "runs")
    with RealAgent(tmp_path, hosted.grpc_address, token_file, components):
        study = client.create_study(
            "hosted-agent",
            objectives=[trimtab.Minimize("value")],
            algorithm="gp",
            component=COMPONENT,
            application=APPLICATION,
            max_trials=20,
        )
        wait_for(lambda: study.refresh().finished_count >= 5, 120, "some trials are done")
        worker = hosted.processes["worker-1"]
        assert worker.process is not None
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
        assert study.wait(timeout=180, progress=False) == "COMPLETED"
    trials = study.trials()
    assert [trial.number for trial in trials] == list(range(1, 21))
    for trial in trials:
        assert trial.metrics == {"value": pytest.approx(value(trial.params))}


@pytest.mark.timeout(60)
def test_every_process_stops_when_told(hosted: Hosted) -> None:
    for name in ("web", "grpc", "worker-2", "beat"):
        process = hosted.processes[name].process
        assert process is not None
        assert process.poll() is None, f"{name} has ended by itself"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        assert time.monotonic() - began < 10, name
