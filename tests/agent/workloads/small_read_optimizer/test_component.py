"""Tests of the component: its trials and its study."""

from pathlib import Path

import pytest
import yaml

from service.core.parameters import OrdinalParameter
from service.core.space import Space
from tests.agent.conftest import processes_of
from tests.agent.workloads.shared import MIB, metrics_in, try_trial
from tests.agent.workloads.small_read_optimizer.preload import WORKLOAD
from tests.factories.slurm import Slurm
from tests.marks import slow_cases

# The library's own default, which is that of the paper.
LITERAL = {
    "SRO_SEQUENCE_LENGTH": 100,
    "SRO_DSC_BINSIZE": 10485756,
    "SRO_CLUSTER_THRESHOLD": 2,
    "SRO_PREFETCH_SIZE": 209715120,
}
APPLICATIONS = yaml.safe_load((WORKLOAD / "component.yaml").read_text())["applications"]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an agent, which keeps its build for all tests."""
    return tmp_path_factory.mktemp("state")


@pytest.mark.parametrize(
    "application",
    [
        "columns",
        *slow_cases("another pattern of the same program", "sro-1", "sro-2", "sro-3", "hotspots"),
    ],
)
def test_trials(mounts: None, small: Path, state: Path, application: str) -> None:
    printed = try_trial(
        small, state, application, "--set", "SRO_PREFETCH_SIZE=65536", "--set", "SRO_DSC_BINSIZE=262144"
    )
    assert "outcome: completed" in printed
    assert metrics_in(printed)["seconds"] > 0
    # At least 60 reads of 4 KiB.
    assert metrics_in(printed)["mib_per_second"] * metrics_in(printed)["seconds"] > 59 * 4 / 1024
    assert metrics_in(printed)["prefetched_bytes"] < 8 * MIB
    literal = [word for name, value in LITERAL.items() for word in ("--set", f"{name}={value}")]
    printed = try_trial(small, state, application, *literal)
    assert metrics_in(printed)["prefetched_bytes"] == 8 * MIB  # the whole file
    assert processes_of(state) == []


def test_the_control_reads_the_same_without_the_slow_file_server(
    small: Path, state: Path, programs_start: None
) -> None:
    controlled = {name.removesuffix("-local") for name in APPLICATIONS if name.endswith("-local")}
    assert controlled == {name for name in APPLICATIONS if not name.endswith("-local") and "noise" not in name}
    for name in controlled:
        own, control = APPLICATIONS[name]["command"], APPLICATIONS[f"{name}-local"]["command"]
        place = own.index("{build}/fakeapp")
        assert control[:-1] == own[place:-1]
        assert "slowfs" not in " ".join(control)
    printed = try_trial(small, state, "hotspots-local")
    assert "outcome: completed" in printed
    assert metrics_in(printed)["prefetched_bytes"] > 0


def test_a_threshold_above_the_window_is_a_trial_without_prefetching(mounts: None, small: Path, state: Path) -> None:
    printed = try_trial(small, state, "hotspots", "--set", "SRO_CLUSTER_THRESHOLD=200")
    assert "outcome: completed" in printed
    assert metrics_in(printed)["prefetched_bytes"] == 0


@pytest.mark.slow("a trial of another application shows the way")
@pytest.mark.parametrize("application", ["noise-read", "noise-write"])
def test_noise(mounts: None, small: Path, state: Path, application: str) -> None:
    printed = try_trial(small, state, application)
    assert "outcome: completed" in printed
    assert metrics_in(printed)["prefetched_bytes"] == 0


@pytest.mark.slow("the component of the burst buffer runs on Slurm")
def test_a_trial_on_slurm(mounts: None, small: Path, slurm: Slurm, tmp_path: Path) -> None:
    printed = try_trial(small, tmp_path, "hotspots", "--runner", "slurm", "--set", "SRO_PREFETCH_SIZE=65536")
    assert "outcome: completed" in printed
    assert 0 < metrics_in(printed)["prefetched_bytes"] < 8 * MIB


def test_the_grid_of_the_study_has_both_defaults() -> None:
    study = yaml.safe_load((WORKLOAD / "study.yml").read_text())
    own = yaml.safe_load((WORKLOAD / "component.yaml").read_text())["parameters"]
    parameters = [OrdinalParameter(name, tuple(one["values"])) for name, one in study["parameters"].items()]
    everything = Space.build(parameters, study["constraints"]).enumerate(1000)
    assert everything is not None
    assert len(everything) == 3 * 3 * 2 * 6
    scaled = {name: one["default"] for name, one in own.items()}
    assert scaled == {name: one["default"] for name, one in study["parameters"].items()}
    assert LITERAL in everything
    assert scaled in everything
    # the file has a four-hundredth of 100 GiB
    sizes = ("SRO_DSC_BINSIZE", "SRO_PREFETCH_SIZE")
    assert scaled == {**LITERAL, **{name: round(LITERAL[name] / 400) for name in sizes}}
