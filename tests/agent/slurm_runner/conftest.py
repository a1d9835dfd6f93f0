"""A runner and an agent on a real Slurm."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide
from tests.agent.slurm_runner.jobs import gated_agent
from tests.factories.slurm import Slurm
from trimtab_agent.runners.slurm import SlurmRunner


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where gated trials note their runs and look for their gates."""
    (tmp_path / "runs").touch()
    return tmp_path


@pytest.fixture
def agent(tmp_path: Path, place: Path, far_side: FarSide, slurm: Slurm) -> Iterator[AgentProcess]:
    """An agent that has not been started yet; it is, with `start("--runner", "slurm")`."""
    made = gated_agent(place, far_side)
    yield made
    made.clear_away()


@pytest.fixture
def runner(slurm: Slurm) -> Iterator[SlurmRunner]:
    made = SlurmRunner()
    yield made
    made.close()
