"""A runner and an agent on a real Ray, and a simulated Ray."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide
from tests.agent.ray_runner.board import Far
from tests.agent.slurm_runner.jobs import gated_agent
from tests.factories.ray import RayHead
from trimtab_agent.runners import ray as ray_runner
from trimtab_agent.runners.ray import RayRunner


@pytest.fixture
def runner(ray_session: RayHead) -> Iterator[RayRunner]:
    made = RayRunner(ray_session.dashboard)
    yield made
    made.close()


@pytest.fixture
def agent(tmp_path: Path, far_side: FarSide) -> Iterator[AgentProcess]:
    """An agent that has not been started yet; it is, with `start(*on(ray_session))`."""
    (tmp_path / "runs").touch()
    made = gated_agent(tmp_path, far_side)
    yield made
    made.clear_away()


@pytest.fixture
def far() -> Iterator[Far]:
    made = Far()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def simulated(far: Far, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayRunner]:
    monkeypatch.setattr(ray_runner, "SUBMIT_PAUSE", 0.01)
    made = RayRunner(far.address)
    yield made
    made.close()
