"""The components for systems that serve, on real ones: PostgreSQL, nginx, a program that reads a file on SIGHUP."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.embedded.postgres import programs
from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.agent.test_live_pairs import chain_holds, plan
from tests.agent.workloads.shared import WORKLOADS, module_of
from tests.factories.patience import wait_for
from tests.factories.ports import free_port
from tests.factories.service import require_program
from trimtab_components.schema import Scalar

pytestmark = pytest.mark.usefixtures("programs_start")

# A seed whose first block has the candidate.
CANDIDATE_FIRST = "00" * 32


@pytest.fixture
def install(agent: AgentProcess) -> Callable[..., AgentProcess]:
    """Return a function that installs a component with short blocks for an instance, and starts the agent."""

    def make(name: str, instance: str, *changes: tuple[str, str]) -> AgentProcess:
        folder = agent.components / name
        shutil.copytree(WORKLOADS / name, folder)
        text = (folder / "component.yaml").read_text()
        own = text.partition("instances: [")[2].partition("]")[0]
        for before, after in ((own, instance), *changes):
            assert before in text
            text = text.replace(before, after)
        (folder / "component.yaml").write_text(text)
        policy = agent.folder / "policy.yaml"
        policy.write_text("live: {}")
        policy.chmod(0o600)
        return agent.start("--policy", str(policy))

    return make


def expect_trial(
    far_side: FarSide, component: str, instance: str, objective: str, shown: Callable[[], object], **params: Scalar
) -> Any:
    """Run a trial of one pair, and expect that its settings were in force and are not any more."""
    before = shown()
    wanted = plan(objective=objective, warm_up=0.5, block=10.0, least_pairs=1, most_pairs=1, deviation=1.0)
    offer: Callable[..., str] = far_side.offer
    lease = offer(component, application=instance, metrics=(objective,), plan=wanted, **params)
    wait_for(lambda: shown() != before or lease in far_side.settled)
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason
    assert settled.live.decision in ("most", "futile")
    assert settled.live.pairs
    assert settled.metrics[objective] > 0
    assert chain_holds(settled.live)
    assert shown() == before
    return settled.live


def test_all_components_ship_with_the_agent() -> None:
    told = run_agent_command(["workloads"])
    for name in ("redis-live", "postgresql-live", "nginx-live", "sighup-live"):
        assert name in told.stdout


# --- PostgreSQL


class Traffic:
    """Transactions on a server, one after the other."""

    def __init__(self, statement: Callable[[], object]) -> None:
        self._statement, self._ended = statement, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(0.01):
            try:
                self._statement()
            except Exception:
                self._ended.wait(0.1)

    def close(self) -> None:
        self._ended.set()
        self._thread.join()


@pytest.fixture
def postgresql(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server with the include file, and traffic."""
    monkeypatch.setenv("PGBIN", str(programs()))
    cluster_module = module_of(WORKLOADS / "postgresql", "cluster")
    include = "port = 5432\ninclude_if_exists '{folder}/run/postgresql-local-5432.conf'\n"
    monkeypatch.setattr(cluster_module, "BASE", f"{cluster_module.BASE}{include}")
    monkeypatch.setenv("PATH", f"{programs()}:{os.environ['PATH']}")
    with cluster_module.temporary() as cluster:
        # Not in the test's own folder: the server may have another user.
        (cluster.folder / "run").mkdir()
        monkeypatch.setenv("POSTGRESQL_LIVE_RUN", str(cluster.folder / "run"))
        monkeypatch.setenv("PGHOST", str(cluster.folder))
        cluster.create()
        cluster.start({})
        traffic = Traffic(lambda: cluster.query("select count(*) from pg_class, generate_series(1, 30)"))
        yield cluster
        traffic.close()


# A busy machine pauses for longer than the guard of the component allows.
PATIENT = (
    ("latency: {metric: mean_ms, above_control: 2, for: 10}", "latency: {metric: mean_ms, above: 1e9, for: 10}"),
)


def work_mem(cluster: Any) -> str:
    return str(cluster.query("show work_mem")[0])


def test_postgresql_is_switched_by_an_include_file_and_a_reload(
    install: Callable[..., AgentProcess], far_side: FarSide, postgresql: Any
) -> None:
    install("postgresql-live", "local-5432", *PATIENT)
    live = expect_trial(
        *(far_side, "postgresql-live", "local-5432", "mean_ms"), lambda: work_mem(postgresql), work_mem=65536, jit=False
    )
    assert live.incumbent["work_mem"].text == "4096"
    assert live.pairs[0].candidate_metrics["transactions"] > 0
    assert not list((postgresql.folder / "run").glob("*.conf"))


def test_a_postgresql_that_was_killed_has_its_old_settings_again(
    install: Callable[..., AgentProcess], far_side: FarSide, postgresql: Any
) -> None:
    """The server is away for a while; the include file is gone before it is back."""
    agent = install("postgresql-live", "local-5432", *PATIENT)
    lease = far_side.offer(
        "postgresql-live",
        application="local-5432",
        plan=plan(objective="mean_ms", warm_up=0.5, block=20.0, seed=CANDIDATE_FIRST),
        work_mem=65536,
    )
    wait_for(lambda: (postgresql.folder / "run" / "postgresql-local-5432.conf").exists() or lease in far_side.settled)
    wait_for(lambda: work_mem(postgresql) == "64MB" or lease in far_side.settled)
    assert lease not in far_side.settled, far_side.settled[lease].reason
    postgresql.kill()
    wait_for(lambda: not (postgresql.folder / "run" / "postgresql-local-5432.conf").exists())
    postgresql.start({})
    assert work_mem(postgresql) == "4MB"
    settled = far_side.outcome(lease)
    assert settled.reason_code in ("live_guard_broken", "live_stuck")
    told = run_agent_command(["live", "revert", "--state-dir", str(agent.state)])
    assert "FAILED" not in told.stdout
    assert work_mem(postgresql) == "4MB"


# --- nginx


@pytest.fixture
def nginx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """An nginx with the include files and the status page; its port."""
    program = require_program("nginx", "nginx-light")
    port, run = free_port(), tmp_path / "run"
    run.mkdir()
    (tmp_path / "nginx.conf").write_text(f"""
pid {tmp_path}/nginx.pid;
error_log {tmp_path}/error.log;
worker_processes 1;
events {{}}
http {{
    access_log off;
    client_body_temp_path {tmp_path}/t1; proxy_temp_path {tmp_path}/t2; fastcgi_temp_path {tmp_path}/t3;
    uwsgi_temp_path {tmp_path}/t4; scgi_temp_path {tmp_path}/t5;
    include {run}/*.conf;
    server {{
        listen 127.0.0.1:{port};
        location = /status {{ stub_status; }}
        location = /settings {{ include {run}/*.json; return 200 '{{}}'; }}
    }}
}}
""")
    command = [program, "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")]
    monkeypatch.setenv("NGINX_LIVE_RUN", str(run))
    monkeypatch.setenv("NGINX_LIVE_COMMAND", " ".join(command))
    process = subprocess.Popen([*command, "-g", "daemon off;"])
    yield port
    process.terminate()
    process.wait()


def nginx_settings(port: int) -> object:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/settings", timeout=10) as page:
        return json.loads(page.read())


def test_nginx_is_switched_by_include_files_and_a_reload(
    install: Callable[..., AgentProcess], far_side: FarSide, nginx: int, tmp_path: Path
) -> None:
    wait_for(lambda: (tmp_path / "nginx.pid").exists())
    patient = [
        ("{metric: latency_us, above_control: 3, for: 5}", "{metric: latency_us, above: 1e9, for: 5}"),
        ("path: latency_us}", "path: latency_us, every: 3}"),
        *(
            (f"path: {name}, kind: counter", f"path: {name}, every: 3, kind: counter")
            for name in ("requests", "dropped")
        ),
    ]
    install("nginx-live", f"nginx-{nginx}", *patient)
    live = expect_trial(
        *(far_side, "nginx-live", f"nginx-{nginx}", "latency_us"),
        lambda: nginx_settings(nginx),
        gzip=True,
        gzip_comp_level=5,
        open_file_cache=100,
    )
    assert live.incumbent["gzip"].flag is False
    assert live.pairs[0].candidate_metrics["requests"] > 0
    assert not [*(tmp_path / "run").glob("*.conf"), *(tmp_path / "run").glob("*.json")]


def test_settings_that_nginx_refuses_are_no_trial(
    install: Callable[..., AgentProcess], far_side: FarSide, nginx: int, tmp_path: Path
) -> None:
    """A directive that the file of the administrator has too is refused by `nginx -t`, and nothing was reloaded."""
    wait_for(lambda: (tmp_path / "nginx.pid").exists())
    text = (tmp_path / "nginx.conf").read_text()
    (tmp_path / "nginx.conf").write_text(text.replace("access_log off;", "access_log off; sendfile on;"))
    install("nginx-live", f"nginx-{nginx}")
    settled = far_side.outcome(
        far_side.offer(
            "nginx-live", application=f"nginx-{nginx}", plan=plan(objective="latency_us", block=1.0), gzip=True
        )
    )
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_INFEASIBLE, "live_not_applied")
    assert '"sendfile" directive is duplicate' in settled.reason
    assert nginx_settings(nginx) == {}


# --- a program that reads a file on SIGHUP


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    monkeypatch.setenv("SIGHUP_LIVE_RUN", str(tmp_path / "run"))
    process = subprocess.Popen([sys.executable, str(WORKLOADS / "sighup-live" / "program.py"), "one"])
    wait_for((tmp_path / "run" / "one.status").exists)
    yield process
    process.kill()
    process.wait()


def test_a_program_is_switched_by_a_file_and_sighup(
    install: Callable[..., AgentProcess], far_side: FarSide, program: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    install("sighup-live", "one")
    status = tmp_path / "run" / "one.status"
    live = expect_trial(
        far_side,
        "sighup-live",
        "one",
        "latency_ms",
        lambda: json.loads(status.read_text())["settings"],
        workers=16,
        batch=64,
    )
    assert {name: value.integer for name, value in live.incumbent.items()} == {"workers": 4, "batch": 16}
    # 8 ms in place of 14, whatever the load is.
    assert live.effect < -0.3
    assert program.poll() is None


def test_a_program_that_was_killed_begins_with_its_own_settings(
    install: Callable[..., AgentProcess], far_side: FarSide, program: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    install("sighup-live", "one")
    wanted = plan(objective="latency_ms", block=20.0, seed=CANDIDATE_FIRST)
    lease = far_side.offer("sighup-live", application="one", plan=wanted, workers=16, batch=64)
    wait_for((tmp_path / "run" / "one.json").exists)
    os.kill(program.pid, signal.SIGKILL)
    program.wait()
    wait_for(lambda: not (tmp_path / "run" / "one.json").exists())
    settled = far_side.outcome(lease)
    assert settled.reason_code in ("live_stuck", "live_guard_broken", "live_not_applied")
