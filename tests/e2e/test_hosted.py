"""The spine in hosted mode: PostgreSQL over TCP, Redis, and each process on its own, configured by the environment."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import httpx
import jwt
import psutil
import pytest
from psycopg.conninfo import conninfo_to_dict

import trimtab
from service._gen import agent_pb2, agent_pb2_grpc, tuning_pb2, tuning_pb2_grpc
from service.embedded.processes import stop
from tests.factories.agent import APPLICATION, COMPONENT, RealAgent, value, write_component
from tests.factories.hosted import TOKEN, Hosted, hosted_service
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.ports import free_port

# All that there is to be said: what must not stand in a log must not stand in this one.
LOGS = {"TRIMTAB_LOG_LEVEL": "DEBUG"}


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Iterator[Hosted]:
    with hosted_service(tmp_path_factory.mktemp("hosted"), redis_url, LOGS, workers=2) as hosted:
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
    assert "DATABASE_URL must name another role" in refused(owner, "migrate")
    for command in ("web", "worker"):
        assert "owns the table" in refused(owner, command)


def test_ask_and_tell_with_a_costly_algorithm(client: trimtab.Client) -> None:
    study = client.create_study(
        "hosted-gp",
        space=[trimtab.Float("x", -10, 10), trimtab.Bool("flag")],
        objectives=[trimtab.Minimize("y")],
        algorithm="gp",
        seed=0,
    )
    for _ in range(5):
        for trial in study.ask(3, timeout=PATIENCE):
            study.tell(trial, (float(trial.params["x"]) - 2) ** 2 + float(trial.params["flag"]))
    assert [trial.state for trial in study.trials()] == ["COMPLETED"] * 15
    assert study.best_trial.metrics["y"] < 4


def test_several_grpc_processes_share_a_port(hosted: Hosted, client: trimtab.Client, tmp_path: Path) -> None:
    port = str(free_port())
    hosted.start("grpc-shared", ["grpc", "--port", port, "--processes", "2"], tmp_path / "grpc-shared.log")
    parent = hosted.processes["grpc-shared"].process
    assert parent is not None

    def pids() -> list[int]:
        return [child.pid for child in psutil.Process(parent.pid).children()]

    def serving() -> set[int]:
        """The processes that listen on the port."""
        found = (
            connection.pid
            for connection in psutil.net_connections("tcp")
            if connection.laddr[1:] == (int(port),)
            if connection.status == psutil.CONN_LISTEN
        )
        return {pid for pid in found if pid is not None}

    wait_for(lambda: len(serving()) == 2, "two processes listen")
    assert serving() == set(pids())
    # Neither another service nor another group may take a share of the calls.
    for more in ([], ["--processes", "2"]):
        command = [sys.executable, "-m", "service.main", "grpc", "--port", port, *more]
        refused = subprocess.run(command, env=hosted.environment, check=False, capture_output=True, text=True)
        assert refused.returncode == 1
        assert "Another process may use" in refused.stderr
    with trimtab.Client(f"127.0.0.1:{port}", token=TOKEN) as shared:
        study = shared.create_study(
            "shared-port",
            space=[trimtab.Float("x", 0, 1)],
            objectives=[trimtab.Minimize("y")],
            algorithm="random",
            seed=0,
        )
        for killed in serving():
            study.tell(study.ask()[0], 1.0)
            os.kill(killed, signal.SIGKILL)
        study.tell(study.ask()[0], 1.0)
        assert [trial.state for trial in client.get_study("shared-port").trials()] == ["COMPLETED"] * 3
    wait_for(lambda: len(serving()) == 2, "both have been restarted")
    stop([hosted.processes.pop("grpc-shared")])
    assert not serving()


@pytest.mark.slow("takes half a minute; tests/e2e/test_lost_workers.py kills workers")
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
            final_check=False,
            application=APPLICATION,
            max_trials=20,
        )
        wait_for(lambda: study.refresh().finished_count >= 5, "some trials are done")
        worker = hosted.processes["worker-1"]
        assert worker.process is not None
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
        assert study.wait(timeout=PATIENCE, progress=False) == "COMPLETED"
    trials = study.trials()
    assert [trial.number for trial in trials] == list(range(1, 21))
    for trial in trials:
        assert trial.metrics == {"value": pytest.approx(value(trial.params))}


def lines(hosted: Hosted, process: str, **about: object) -> list[dict[str, Any]]:
    """Return the log lines of a process that have these fields."""
    found = []
    # the last line may be half written yet
    whole, _, _ = hosted.log(process).rpartition("\n")
    for text in whole.splitlines():
        if text.startswith("{"):
            line = json.loads(text)
            if about.items() <= line.items():
                found.append(line)
    return found


def written(hosted: Hosted, process: str, **about: object) -> dict[str, Any]:
    """The one line about this. It is written when the answer is already on its way."""
    wait_for(lambda: bool(lines(hosted, process, **about)), f"{process} has written of {about}")
    [line] = lines(hosted, process, **about)
    return line


def test_a_log_line_names_the_request_the_tenant_and_the_trial(hosted: Hosted, client: trimtab.Client) -> None:
    client.create_study(
        "reported", space=[trimtab.Bool("b")], objectives=[trimtab.Minimize("y")], algorithm="random"
    ).ask()
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Request-ID": "a-name-of-ones-own"}
    answer = httpx.get(f"{hosted.http_url}/api/v1/studies/reported/trials/1", headers=headers, timeout=PATIENCE)
    assert (answer.status_code, answer.headers["X-Request-ID"]) == (200, "a-name-of-ones-own")
    line = written(hosted, "web", request="a-name-of-ones-own")
    assert {"tenant": 1, "study": "reported", "trial": 1, "actor": "administrator"}.items() <= line.items()
    answered = {"method": "GET", "path": "/api/v1/studies/reported/trials/1", "status": 200}
    assert {"message": "request answered", **answered}.items() <= line.items()
    # A name that could pass for something else is not taken.
    forged = httpx.get(f"{hosted.http_url}/healthz", headers={"X-Request-ID": 'x" {}'}, timeout=PATIENCE)
    assert re.fullmatch("[0-9a-f]{32}", forged.headers["X-Request-ID"])

    with grpc.insecure_channel(hosted.grpc_address) as channel:
        stub = tuning_pb2_grpc.TuningServiceStub(channel)
        for number, request in ((1, "by-grpc"), (99, "by-grpc-2")):
            named = (("authorization", f"Bearer {TOKEN}"), ("x-request-id", request))
            wanted = tuning_pb2.GetTrialRequest(study="reported", trial=number)
            future = stub.GetTrial.future(wanted, metadata=named, timeout=PATIENCE)
            assert ("x-request-id", request) in {(key, value) for key, value in future.trailing_metadata()}
    line = written(hosted, "grpc", request="by-grpc")
    assert {"tenant": 1, "study": "reported", "trial": 1, "level": "DEBUG"}.items() <= line.items()
    line = written(hosted, "grpc", request="by-grpc-2")
    assert {"trial": 99, "level": "INFO", "status": "NOT_FOUND"}.items() <= line.items()


def test_a_worker_logs_the_operation_and_study_of_its_work(hosted: Hosted, client: trimtab.Client) -> None:
    study = client.create_study(
        "costly", space=[trimtab.Float("x", 0, 1)], objectives=[trimtab.Minimize("y")], algorithm="gp", seed=1
    )
    # Its first configurations are drawn where they are asked for; models are for the worker.
    for _ in range(5):
        for trial in study.ask(3, timeout=PATIENCE):
            study.tell(trial, float(trial.params["x"]))

    def reported() -> bool:
        found = [line for name in ("worker-1", "worker-2") for line in lines(hosted, name, tenant=1)]
        return any({"operation", "study_id"} <= line.keys() for line in found)

    wait_for(reported, "a worker has written what it computed for")


def test_no_secret_stands_in_a_log(hosted: Hosted, client: trimtab.Client) -> None:
    """Send secrets in correct and in wrong ways, and find none of them in the logs."""
    url, admin = hosted.http_url, {"Authorization": f"Bearer {TOKEN}"}
    password = conninfo_to_dict(hosted.environment["DATABASE_URL"])["password"]
    console = {"X-Trimtab-Console": "1"}
    secrets = [TOKEN, str(password), hosted.environment["TRIMTAB_SECRET_KEY"]]

    made = httpx.post(
        f"{url}/api/v1/tokens", headers=admin, json={"name": "n", "scopes": ["read"]}, timeout=PATIENCE
    ).json()
    enrolment = httpx.post(f"{url}/api/v1/enrolments", headers=admin, json={}, timeout=PATIENCE).json()
    _, by_grpc = client.create_token("m", ["read"])
    secrets += [made["secret"], enrolment["secret"], by_grpc]
    # A correct secret, a corrupted one, one in the wrong place, and one in a request whose error quotes the value.
    spoilt = made["secret"][:-1] + "~"
    forged = jwt.encode({"sub": "x"}, "k" * 32, algorithm="HS256")
    secrets += [spoilt, forged, "swordfish-1", "swordfish-2", "swordfish-3"]
    for shown in (made["secret"], spoilt, enrolment["secret"], forged):
        httpx.get(f"{url}/api/v1/session", headers={"Authorization": f"Bearer {shown}"}, timeout=PATIENCE)
        httpx.get(f"{url}/api/v1/session", headers={"Cookie": f"trimtab_session={shown}"}, timeout=PATIENCE)
        httpx.post(f"{url}/api/v1/session", json={"token": shown}, headers=console, timeout=PATIENCE)
        httpx.delete(f"{url}/api/v1/tokens/{shown}", headers=admin, timeout=PATIENCE)
        with pytest.raises(trimtab.TrimtabError), trimtab.Client(hosted.grpc_address, shown + "x") as wrong:
            wrong.list_studies()
    signed_in = httpx.post(f"{url}/api/v1/session", json={"token": TOKEN}, headers=console, timeout=PATIENCE)
    secrets.append(signed_in.cookies["trimtab_session"])
    httpx.get(f"{url}/login", params={"code": "swordfish-1"}, timeout=PATIENCE)
    httpx.post(f"{url}/api/v1/session", json={"token": ["swordfish-2"]}, headers=console, timeout=PATIENCE)
    with grpc.insecure_channel(hosted.grpc_address) as channel:
        enrol = agent_pb2.EnrolRequest(token="swordfish-3", agent_id="a", credential_digest="ab" * 32)
        with pytest.raises(grpc.RpcError):
            agent_pb2_grpc.AgentServiceStub(channel).Enrol(enrol, timeout=PATIENCE)
    # The database is away, and its driver says where it looked for it.
    hosted.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'trimtab_service'")
    wait_for(hosted.ready, "the web process is ready again")

    for name in hosted.processes:
        text = hosted.log(name)
        assert text, name
        for secret in secrets:
            assert secret not in text, f"{name} has written {secret[:6]}... down"
    assert lines(hosted, "web", level="INFO")


def test_a_sigterm_ends_every_process_in_good_order(hosted: Hosted) -> None:
    begun = {"web": "Uvicorn running", "grpc": "serving gRPC", "worker-2": " ready.", "beat": " ready."}
    for name, message in begun.items():
        wait_for(lambda of=name, text=message: text in hosted.log(of))  # type: ignore[misc]
        process = hosted.processes[name].process
        assert process is not None
        assert process.poll() is None, f"{name} has ended by itself"
        process.send_signal(signal.SIGTERM)
        # Uvicorn sends itself the signal again, when all is done.
        assert process.wait(PATIENCE) == (-signal.SIGTERM if name == "web" else 0), hosted.log(name)
    assert "Finished server process" in hosted.log("web")
