"""Fixtures of the tests of Open MPI's collectives."""

import subprocess
from pathlib import Path

import pytest

from tests.agent.workloads.openmpi_collectives.mpi import WORKLOAD
from tests.agent.workloads.shared import make_once
from tests.factories.service import require_program


@pytest.fixture(scope="session")
def open_mpi() -> None:
    """Skip where Open MPI is not installed."""
    for program, package in (("mpirun", "openmpi-bin"), ("ompi_info", "openmpi-bin"), ("mpicc", "libopenmpi-dev")):
        require_program(program, package)


@pytest.fixture(scope="session")
def benchmark(open_mpi: None, tmp_path_factory: pytest.TempPathFactory, programs_start: None) -> Path:
    """The benchmark program."""

    def build(folder: Path) -> None:
        command: list[str | Path] = [
            "mpicc",
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-O2",
            "-o",
            folder / "collective",
        ]
        subprocess.run([*command, WORKLOAD / "src" / "collective.c"], check=True)

    return make_once(tmp_path_factory, "openmpi-benchmark", build) / "collective"
