"""Tests of the component: its checkpoint program, its trials and its studies."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from service.core.parameters import OrdinalParameter
from service.core.space import Space
from tests.agent.conftest import processes_of
from tests.agent.workloads.burst_buffer.place import SMALL, WORKLOAD, Place
from tests.agent.workloads.shared import metrics_in, run, try_trial
from tests.factories.service import require_program
from tests.factories.slurm import Slurm


@pytest.mark.parametrize("how", [[], ["-S"], ["-e", "-S"]])
def test_a_checkpoint_is_restarted_from(place: Place, how: list[str]) -> None:
    sizes = ["-n", 5, "-b", "300k", "-s", 7, "-r", 3, "-c", 1]
    done = place.run(place.built / "checkpoint", *sizes, *how, place.target, options=SMALL)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["bytes"] == 5 * 7 * 3 * 300 * 1024 == place.counted()["written_bytes"]
    assert list(place.target.iterdir()) == []
    done = run([place.built / "checkpoint", *sizes, *how, "-k", place.target])
    assert done.returncode == 0
    assert len(list(place.target.iterdir())) == (2 if how else 10)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["-n", "0", "/tmp"], 2, "-n: '0' is not allowed. Use a whole number from 1 to 1024"),
        (["-b", "4", "/tmp"], 2, "-b: '4' is not allowed. Use a whole number from 8"),
        (["-r", "1k", "/tmp"], 2, "-r: '1k' is not allowed"),
        ([], 2, "usage: checkpoint"),
        (["-c", "0", "/no-folder"], 3, "cannot make /no-folder/checkpoint.0."),
    ],
)
def test_checkpoint_refuses(built: Path, arguments: list[str], status: int, message: str) -> None:
    done = run([built / "checkpoint", *arguments])
    assert done.returncode == status
    assert message in done.stderr


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an agent, which keeps its build for all tests."""
    return tmp_path_factory.mktemp("state")


@pytest.mark.parametrize("application", ["sbb-1", "sbb-2", "checkpoint"])
def test_trials(small: Path, state: Path, application: str) -> None:
    require_program("fio", "fio")
    printed = try_trial(small, state, application, "--set", "flash-destagers=3", "--set", "ram-cache-threshold=50")
    assert "outcome: completed" in printed
    assert "'--flash-destagers=3'" in printed
    assert metrics_in(printed)["seconds"] > 0
    assert metrics_in(printed)["drain_seconds"] > 0
    assert processes_of(state) == []


def test_a_trial_on_slurm(small: Path, slurm: Slurm, tmp_path: Path) -> None:
    printed = try_trial(small, tmp_path, "checkpoint", "--runner", "slurm", "--set", "worker-threads=3")
    assert "outcome: completed" in printed
    assert metrics_in(printed)["seconds"] > 0


def test_a_cache_that_the_memory_does_not_hold_is_infeasible(small: Path, tmp_path: Path) -> None:
    """This holds even if the component's file allows it, because machines differ."""
    workload = tmp_path / "burst-buffer"
    shutil.copytree(small, workload)
    component = yaml.safe_load((workload / "component.yaml").read_text())
    component["parameters"]["ram-cache-size"]["max"] = 1 << 40
    (workload / "component.yaml").write_text(yaml.safe_dump(component))
    printed = try_trial(workload, tmp_path / "state", "checkpoint", "--set", f"ram-cache-size={1 << 39}")
    assert "outcome: infeasible" in printed
    assert f"--ram-cache-size: '{1 << 39}' is not allowed. Use 16 to " in printed


def test_the_studies_tune_all_eight_parameters_within_a_jobs_memory() -> None:
    component = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
    tuned = set()
    for pattern in component["applications"]:
        study = yaml.safe_load((WORKLOAD / "studies" / f"{pattern}.yml").read_text())
        assert study["application"] == pattern
        assert list(study["parameters"]) == study["only"]
        tuned |= set(study["only"])
        parameters = [OrdinalParameter(name, tuple(one["values"])) for name, one in study["parameters"].items()]
        everything = Space.build(parameters, study["constraints"]).enumerate(1000)
        assert everything is not None
        sizes = {(int(one["ram-cache-size"]), int(one["flash-cache-size"])) for one in everything}
        assert sizes == {(16, 100), (16, 150), (40, 100), (40, 150), (80, 100)}
        default = {name: component["parameters"][name]["default"] for name in study["only"]}
        assert default in everything
        assert default == {name: one["default"] for name, one in study["parameters"].items()}
    assert tuned == set(component["parameters"])
