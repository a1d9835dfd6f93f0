"""The component for a Redis server that serves, on a real server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import wait_for
from tests.factories.service import redis_server, require_program

WORKLOAD = Path(__file__).parents[3] / "agents" / "workloads" / "redis-live"


@pytest.fixture
def instance(tmp_path: Path, programs_start: None) -> Iterator[str]:
    """A Redis server of the test's own, as the component names it."""
    require_program("redis-cli", "redis-tools")
    (tmp_path / "redis").mkdir()
    with redis_server(tmp_path / "redis") as url:
        host, _, port = url.partition("://")[2].partition("/")[0].rpartition(":")
        yield f"{host.rpartition('@')[2]}-{port}"


def setting(instance: str, name: str) -> str:
    host, _, port = instance.rpartition("-")
    shown = subprocess.run(
        ["redis-cli", "-h", host, "-p", port, "CONFIG", "GET", name], capture_output=True, text=True, check=True
    )
    return shown.stdout.split()[-1]


def test_settings_are_applied_while_the_server_serves_and_taken_back(
    agent: AgentProcess, far_side: FarSide, instance: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_LIVE_RUN", str(tmp_path / "run"))
    folder = agent.components / "redis-live"
    shutil.copytree(WORKLOAD, folder)
    text = (folder / "component.yaml").read_text().replace("127.0.0.1-6379", instance)
    (folder / "component.yaml").write_text(
        text.replace("warm_up: 5s", "warm_up: 0.5s").replace("block: 30s", "block: 8s")
    )
    policy = tmp_path / "policy.yaml"
    policy.write_text("live: {}")
    policy.chmod(0o600)
    told = run_agent_command(["live", "calibrate", str(folder), "--seconds", "6"])
    assert "metric latency_us: " in told.stdout, told.stderr
    assert "no reading" not in told.stdout
    agent.start("--policy", str(policy))
    lease = far_side.offer(
        "redis-live", application=instance, metrics=("latency_us", "commands"), hz=100, activerehashing=False
    )
    wait_for(lambda: setting(instance, "hz") == "100")
    assert setting(instance, "activerehashing") == "no"
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason
    assert settled.metrics["latency_us"] > 0
    assert settled.metrics["commands"] > 1
    assert (setting(instance, "hz"), setting(instance, "activerehashing")) == ("10", "yes")
