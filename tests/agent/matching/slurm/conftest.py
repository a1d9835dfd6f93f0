"""A cluster with the plug-in, and an agent behind it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide
from tests.agent.matching.conftest import COMPONENT, Matching
from tests.agent.matching.slurm.cluster import Cluster
from tests.factories.slurm import slurm_cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Iterator[Cluster]:
    (folder := tmp_path_factory.mktemp("slurm-matching") / "slurm").mkdir()
    with slurm_cluster(folder, "CliFilterPlugins=lua\n") as slurm:
        yield Cluster(slurm, folder.parent)


@pytest.fixture
def matching(
    tmp_path: Path, far_side: FarSide, library: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Matching]:
    """An agent behind the cluster's socket that has not been started yet."""
    monkeypatch.setenv("SLURM_CONF", str(cluster.slurm.configuration))
    agent = AgentProcess(tmp_path, far_side.port)
    agent.components.mkdir()
    (agent.components / "solver.yaml").write_text(COMPONENT)
    far_side.resemble("solver", threads=8)
    made = Matching(tmp_path, far_side, agent, library)
    made.socket = cluster.socket
    yield made
    agent.clear_away()
    cluster.socket.unlink(missing_ok=True)
    cluster.slurm.settle()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where jobs write their settings."""
    return tmp_path / "out"
