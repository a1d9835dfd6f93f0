"""Fixtures of the tests of PostgreSQL's workload: the server of the wheel, and a small filled cluster."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from service.embedded.postgres import programs
from tests.agent.workloads.shared import WORKLOADS, copy_of, make_once, module_of, run

WORKLOAD = WORKLOADS / "postgresql"


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the workload use the PostgreSQL of the wheel."""
    monkeypatch.setenv("PGBIN", str(programs()))


@pytest.fixture(scope="session")
def modules() -> dict[str, ModuleType]:
    """The workload's modules by name. `bench` has the classes of the `cluster` that it imports."""
    return {name: module_of(WORKLOAD, name) for name in ("space", "bench", "pgtune", "cluster")}


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """A folder with a saved cluster of 100,000 accounts."""

    def make(folder: Path) -> None:
        made = run([sys.executable, WORKLOAD / "bench.py", "prepare", folder, "--scale", 1], PGBIN=programs())
        assert made.returncode == 0, made.stderr

    return make_once(tmp_path_factory, "postgresql-cluster", make)


@pytest.fixture
def cluster(modules: dict[str, ModuleType], filled: Path) -> Iterator[Any]:
    """A filled cluster that does not run yet."""
    with modules["bench"].temporary() as one:
        one.restore(filled / "cluster.tar")
        yield one
        pids, folder = one.processes(), one.folder
    assert not folder.exists()
    assert not any(Path(f"/proc/{pid}/exe").exists() for pid in pids)


@pytest.fixture(scope="session")
def small(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload with a small database and short loads."""
    workload = copy_of(WORKLOAD, tmp_path_factory)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    component["build"]["commands"] = [["cp", str(filled / "cluster.tar"), "{build}"]]
    for application in component["applications"].values():
        application["command"][-1:-1] = ["--seconds=1", "--warm-up=0"]
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    return workload
