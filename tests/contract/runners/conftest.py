"""The runners whose contract (trimtab_agent/runners/base.py) is tested. A new runner joins by an entry in RUNNERS."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.contract.runners.jobs import left_behind
from tests.marks import slow_cases
from trimtab_agent.runners.base import Runner
from trimtab_agent.runners.local import LocalRunner
from trimtab_agent.runners.psij import PsijRunner, connect
from trimtab_agent.runners.ray import RayRunner
from trimtab_agent.runners.slurm import SlurmRunner

RUNNERS = ["local", "slurm", "ray", "psij-local", "psij-slurm"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on every runner.

    The supervisor does the same work in every batch job, and a job on Ray or through PSI/J takes seconds. A test of
    such work has the marker `without_ray`.
    tests/agent/ray_runner/test_simulated.py shows that Ray's jobs are watched together.
    """
    if "make_runner" in metafunc.fixturenames:
        names: list[object] = list(RUNNERS)
        results = metafunc.module.__name__.endswith(("test_results", "test_cancelling"))
        if metafunc.definition.get_closest_marker("without_ray"):
            names = names[:2]
        elif not results:
            names[2:] = slow_cases("a job takes seconds; results show the way", *names[2:])
        else:
            names[-1:] = slow_cases("a query of PSI/J takes seconds; its local executor shows the way", "psij-slurm")
        metafunc.parametrize("make_runner", names, indirect=True)


def psij_runner(executor: str, work: Path) -> Runner:
    """Return a runner through PSI/J."""
    return PsijRunner(connect(executor, work))


@pytest.fixture
def make_runner(request: pytest.FixtureRequest) -> Callable[[], Runner]:
    if request.param == "ray":
        return partial(RayRunner, request.getfixturevalue("ray_session").dashboard)
    if request.param.startswith("psij-"):
        request.getfixturevalue("monkeypatch").setenv("TRIMTAB_MATCH", "off")  # as `connect` leaves it
        if request.param == "psij-slurm":
            request.getfixturevalue("slurm")
        return partial(psij_runner, request.param.removeprefix("psij-"), request.getfixturevalue("tmp_path") / "psij")
    if request.param == "slurm":
        request.getfixturevalue("slurm")
        return SlurmRunner
    return LocalRunner


@pytest.fixture
def nodes(make_runner: Callable[[], Runner], request: pytest.FixtureRequest) -> list[str]:
    """Where a job may run."""
    if make_runner is SlurmRunner:
        found: list[str] = request.getfixturevalue("slurm").nodes
        return found
    return [os.uname().nodename]


@pytest.fixture
def runner(make_runner: Callable[[], Runner], programs_start: None) -> Iterator[Runner]:
    made = make_runner()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The job's folder. At the end no process of the job may be left."""
    made = tmp_path / "job"
    (made / "work").mkdir(parents=True)
    yield made
    assert left_behind(made) == []
