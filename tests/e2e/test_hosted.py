"""The spine in hosted mode: PostgreSQL over TCP, Redis, and each process on its own, configured by the environment."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import trimtab
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.hosted import TOKEN, Hosted, hosted_service
from tests.factories.service import wait_for


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Hosted]:
    with hosted_service(tmp_path_factory.mktemp("hosted"), redis_url, workers=2) as hosted:
        yield hosted


@pytest.fixture
def client(hosted: Hosted) -> Iterator[trimtab.Client]:
    with trimtab.Client(hosted.grpc_address, token=TOKEN) as client:
        yield client


def test_the_role_that_owns_the_tables_may_migrate_and_not_serve(hosted: Hosted) -> None:
    service = [sys.executable, "-m", "service.main"]

    def refused(environment: Mapping[str, str], command: str) -> str:
        done = subprocess.run([*service, command], env=environment, check=False, capture_output=True, text=True)
        assert done.returncode == 2
        return done.stderr

    assert "TRIMTAB_OWNER_DATABASE_URL" in refused(hosted.environment, "migrate")
    owner = {**hosted.environment, "DATABASE_URL": hosted.owner_url, "TRIMTAB_OWNER_DATABASE_URL": hosted.owner_url}
    assert "a role of its own" in refused(owner, "migrate")
    for command in ("web", "worker"):
        assert "owns the table" in refused(owner, command)


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
