"""Tests of the component: its search space, its trials, PGTune's rules, measure.py."""

import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from tests.agent.conftest import processes_of
from tests.agent.workloads.postgresql.conftest import WORKLOAD
from tests.agent.workloads.shared import check_refusal, metrics_in, run_script, try_trial


@pytest.fixture(scope="module")
def settings(modules: dict[str, ModuleType], programs_start: None) -> dict[str, dict[str, Any]]:
    """The settings of the server, as space.py reads them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGBIN", str(modules["cluster"].programs()))
        found: dict[str, dict[str, Any]] = modules["space"].read()
    return found


def test_the_space_is_the_servers(modules: dict[str, ModuleType], settings: dict[str, dict[str, Any]]) -> None:
    command = yaml.safe_load((WORKLOAD / "component.yaml").read_text())["parameters_from"]["command"]
    found = modules["space"].parameters(command[2:], settings)
    assert len(found) >= 20
    assert not set(found) & {"fsync", "full_page_writes", "synchronous_commit"}
    buffers = found["shared_buffers"]
    assert (buffers["type"], buffers["default"], buffers["log"]) == ("int", 16384, True)
    assert buffers["unit"] == "8kB"
    assert found["random_page_cost"]["type"] == "float"
    assert found["random_page_cost"]["default"] == 4.0
    assert found["jit"]["values"] == ["on", "off"]
    assert {"off", "pglz"} <= set(found["wal_compression"]["values"])
    assert found["wal_buffers"]["default"] == -1
    for name, one in found.items():
        values = one.get("values", [one.get("min"), one.get("max")])
        assert one["default"] in values or values[0] <= one["default"] <= values[1], name


def test_unsafe_settings_must_be_declared(
    modules: dict[str, ModuleType], settings: dict[str, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    space = modules["space"]
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        with pytest.raises(space.SpaceError, match=f"Write unsafe:{name} if you accept that"):
            space.parameters([name], settings)
    declared = space.parameters(["unsafe:synchronous_commit", "no_such_setting"], settings)
    assert "off" in declared["synchronous_commit"]["values"]
    assert list(declared) == ["synchronous_commit"]
    assert "left out: no_such_setting: this PostgreSQL has no such setting" in capsys.readouterr().err
    with pytest.raises(space.SpaceError, match=r"tcp_keepalives_idle: .* no entry in LIMITS"):
        space.parameters(["tcp_keepalives_idle"], settings)


def test_a_trial(small: Path, tmp_path: Path) -> None:
    printed = try_trial(small, tmp_path, "tpcb", "--set", "shared_buffers=2048", "--set", "jit=off")
    assert "outcome: completed" in printed
    assert "'--set=shared_buffers=2048', '--set=jit=off'" in printed  # defaults are omitted
    metrics = metrics_in(printed)
    assert metrics["tps"] > 0
    assert metrics["p95_ms"] > 0
    assert metrics["memory_mib"] > 1
    assert processes_of(tmp_path) == []


def test_pgtunes_rules(modules: dict[str, ModuleType]) -> None:
    """The figures are those of PGTune's page for a web site with 4 GB, and for short transactions with 16 GB."""
    found = modules["pgtune"].settings("web", 4096, 2)
    assert {name: found[name] for name in ("shared_buffers", "work_mem", "maintenance_work_mem", "wal_buffers")} == {
        "shared_buffers": 131072,  # 1 GB
        "work_mem": 5242,
        "maintenance_work_mem": 262144,
        "wal_buffers": 2048,  # 16 MB
    }
    assert (found["min_wal_size"], found["max_wal_size"], found["random_page_cost"]) == (1024, 4096, 1.1)
    assert "max_parallel_workers" not in found
    found = modules["pgtune"].settings("oltp", 16384, 4)
    assert found["max_parallel_workers_per_gather"] == 2
    assert found["work_mem"] == (16384 - 4096) * 1024 // 900 // 2


@pytest.mark.slow("a script of measurements, which takes minutes")
def test_measure(small: Path, tmp_path: Path) -> None:
    asked = ["--loads", "tpcb", "--trials", "2", "--rounds", "2", "--folder", tmp_path]
    answer = run_script(small, "measure", *asked)
    assert answer.returncode == 0, answer.stderr
    rows = (tmp_path / "loads.md").read_text().splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == ["default", "PGTune", "auto", "random"]
    assert (tmp_path / "settings.md").read_text().count("balances agree") == 2
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_measuring_refuses(tmp_path: Path, programs_start: None) -> None:
    answer = run_script(WORKLOAD, "measure", "--loads", "tpcb,tpcc", "--folder", tmp_path / "folder")
    check_refusal(answer, "--loads: 'tpcc' is not allowed. Use tpcb, select, analytic, dashboard")
    assert not (tmp_path / "folder").exists()


def test_no_programs_are_the_machines_fault(modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules["cluster"], "NEEDED", ("initdb", "no-such-program"))
    with pytest.raises(modules["cluster"].MachineError, match=r"Install PostgreSQL \(Debian package postgresql\)"):
        modules["cluster"].programs()
