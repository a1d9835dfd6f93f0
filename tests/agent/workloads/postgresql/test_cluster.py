"""Tests of the cluster: start, change, crash, loads."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.agent.workloads.postgresql.conftest import WORKLOAD
from tests.agent.workloads.shared import run


def test_settings_are_reloaded_or_need_a_restart(cluster: Any, modules: dict[str, ModuleType]) -> None:
    cluster.start({"shared_buffers": 2048, "work_mem": 1024})
    first = cluster.process.pid
    assert cluster.query("show work_mem") == ["1MB"]
    assert cluster.apply({"shared_buffers": 2048, "work_mem": 2048, "checkpoint_timeout": 60}) is False
    assert cluster.process.pid == first
    assert cluster.query("select current_setting('work_mem'), current_setting('checkpoint_timeout')") == ["2MB|1min"]
    assert cluster.apply({"shared_buffers": 4096}) is True
    assert cluster.process.pid != first
    assert cluster.query("select current_setting('shared_buffers'), current_setting('work_mem')") == ["32MB|4MB"]
    with pytest.raises(modules["bench"].ClusterError, match="the server refused settings: work_mem: "):
        cluster.apply({"shared_buffers": 4096, "work_mem": "much"})


def test_commits_are_durable_in_every_cluster(cluster: Any) -> None:
    cluster.start({"work_mem": 1024})
    names = ("fsync", "full_page_writes", "synchronous_commit")
    assert [cluster.query(f"show {name}") for name in names] == [["on"]] * 3


def test_a_failed_start_has_the_servers_message(cluster: Any, modules: dict[str, ModuleType], filled: Path) -> None:
    with pytest.raises(modules["bench"].ClusterError, match='invalid value for parameter "shared_buffers": "many"'):
        cluster.start({"shared_buffers": "many"})
    answer = run([sys.executable, WORKLOAD / "bench.py", "tpcb", filled, "--set", "shared_buffers=many"])
    assert answer.returncode == 1  # infeasible
    assert 'invalid value for parameter "shared_buffers": "many"' in answer.stderr
    answer = run([sys.executable, WORKLOAD / "bench.py", "tpcb", filled, "--set", "work_mem"])
    assert answer.returncode == 1
    assert "--set: 'work_mem' is not allowed. Use NAME=VALUE" in answer.stderr


@pytest.mark.parametrize("load", ["tpcb", "tpcb-16", "select", "analytic", "dashboard"])
def test_loads(cluster: Any, modules: dict[str, ModuleType], load: str) -> None:
    cluster.start({"shared_buffers": 2048})
    metrics = modules["bench"].measure(cluster, load, clients=2, seconds=1, warm_up=0)
    assert metrics["tps"] > 0
    assert metrics["p95_ms"] > 0
    assert 1 < metrics["memory_mib"] < 1000
    assert metrics["cpu_us"] > 0
    if load.startswith("tpcb"):
        assert metrics["wal_bytes"] > 400  # its four rows
    assert (int(cluster.query("select count(*) from pgbench_history")[0]) > 0) is load.startswith("tpcb")


def test_balances_that_do_not_agree_are_found(cluster: Any, modules: dict[str, ModuleType]) -> None:
    cluster.start({})
    modules["bench"].check(cluster)
    cluster.query("update pgbench_tellers set tbalance = 5 where tid = 1")
    with pytest.raises(modules["bench"].ClusterError, match=r"the balances differ: \['0', '0', '0', '5'\]"):
        modules["bench"].check(cluster)


def test_the_log_of_a_transaction_depends_on_its_compression(cluster: Any, modules: dict[str, ModuleType]) -> None:
    found = []
    for compression in ("off", "pglz"):
        cluster.start({"wal_compression": compression})
        found.append(modules["bench"].measure(cluster, "tpcb-16", clients=4, seconds=1, warm_up=0)["wal_bytes"])
        cluster.stop()
    assert found[1] < 0.8 * found[0]


def test_a_crash_loses_nothing(cluster: Any, modules: dict[str, ModuleType]) -> None:
    settings = {"shared_buffers": 2048, "commit_delay": 100}
    cluster.start(settings)
    killed = cluster.processes()
    found = modules["bench"].crash(cluster, settings, clients=2)
    assert found["found"] >= found["acknowledged"] > 0
    assert not set(killed) & set(cluster.processes())
    assert "database system was not properly shut down" in (cluster.folder / "server.log").read_text()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("delete from pgbench_history", "the crash has lost transactions"),
        ("update pgbench_tellers set tbalance = tbalance + 1 where tid = 1", "the balances differ"),
    ],
)
def test_a_loss_is_found(
    cluster: Any, modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, damage: str, message: str
) -> None:
    cluster.start({})
    start = cluster.start

    def start_damaged(settings: dict[str, object]) -> None:
        start(settings)
        cluster.query(damage)

    monkeypatch.setattr(cluster, "start", start_damaged)
    with pytest.raises(modules["bench"].ClusterError, match=message):
        modules["bench"].crash(cluster, {}, clients=2)


@pytest.mark.slow("the crash that loses nothing is the same test")
def test_the_crash_test_as_a_command(filled: Path) -> None:
    answer = run([sys.executable, WORKLOAD / "bench.py", "crash", filled, "--set", "shared_buffers=2048"])
    assert answer.returncode == 0, answer.stderr
    counts = json.loads(answer.stdout)
    assert counts["found"] >= counts["acknowledged"] > 0
