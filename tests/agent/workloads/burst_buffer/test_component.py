"""Tests of the component: its checkpoint program, its trials and its studies."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from service.core.parameters import OrdinalParameter
from service.core.space import Space
from tests.agent.conftest import processes_of
from tests.agent.workloads.burst_buffer.place import SMALL, WORKLOAD, Place
from tests.agent.workloads.shared import MIB, metrics_in, module_of, run, try_trial
from tests.factories.service import lack, require_program
from tests.factories.slurm import Slurm
from tests.marks import slow_cases

bandwidth = module_of(WORKLOAD, "bandwidth")


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


@pytest.mark.parametrize(
    "application",
    [
        "sbb-1",
        "checkpoint-real",
        *slow_cases("the same pattern with other delays", "sbb-2", "checkpoint", "sbb-1-slow"),
    ],
)
def test_trials(small: Path, state: Path, application: str, programs_start: None) -> None:
    require_program("fio", "fio")
    printed = try_trial(small, state, application, "--set", "flash-destagers=3", "--set", "ram-cache-threshold=50")
    assert "outcome: completed" in printed
    assert "'--flash-destagers=3'" in printed
    metrics = metrics_in(printed)
    assert metrics["seconds"] > 0
    assert metrics["drain_seconds"] > 0
    assert metrics["threads"] == 2 + 10 + 10 + 3
    assert metrics["cpu_seconds"] > 0
    # The application also starts, computes and ends.
    assert 0 < metrics["io_seconds"] <= metrics["seconds"]
    assert metrics["mib_per_second"] > 0
    assert processes_of(state) == []


def test_the_bandwidth_is_that_of_the_last_job_of_fio_and_of_all_hosts() -> None:
    fields = ["3", "fio-3.33", "sbb-2", "1", "0", *["0"] * 66]
    fields[5], fields[8], fields[46], fields[49] = "3072", "2000", "1024", "1500"
    run = SimpleNamespace(stdout=f"3;fio-3.33;before;{';9' * 60}\n{';'.join(fields)}\n")
    assert (bandwidth.mib_per_second(run), bandwidth.io_seconds(run)) == (2.0, 2.0)
    fields[4] = "5"
    with pytest.raises(ValueError, match="fio reports the error 5"):
        bandwidth.mib_per_second(SimpleNamespace(stdout=";".join(fields)))
    hosts = [
        {"seconds": 9.0, "write_seconds": seconds, "restart_seconds": 1.0, "bytes": 8 * MIB} for seconds in (2.0, 4.0)
    ]
    run = SimpleNamespace(stdout="\n".join(map(json.dumps, hosts)))
    assert (bandwidth.mib_per_second(run), bandwidth.io_seconds(run)) == (6.0, 5.0)
    with pytest.raises(ValueError, match="neither that of fio"):
        bandwidth.io_seconds(SimpleNamespace(stdout="hello"))


def test_a_trial_with_a_data_node_and_two_client_hosts(place: Place, small: Path, state: Path) -> None:
    """All that the clients write and read passes the data node, and nothing of the hosts is left."""
    if (
        run(["unshare", "--map-root-user", "--net", "ip", "link", "add", "name", "probe", "type", "veth"]).returncode
        != 0
    ):
        lack("no network namespace with links can be made here (Debian package iproute2)")
    printed = try_trial(small, state, "checkpoint-node", "--set", "polling-threads=3")
    assert "outcome: completed" in printed
    assert metrics_in(printed)["threads"] == 3 + 30
    assert processes_of(state) == []
    # the same with a report that is kept
    token = place.folder / "token"
    clients = ["sh", WORKLOAD / "clients.sh", 2, token, place.target, place.built / "checkpoint", "-n", 4, "-s", 2]
    line = place.line(*clients, "-r", 3, "-c", 0, options=["--listen", "0.0.0.0:7000", "--token", token])
    done = run(["unshare", "--map-root-user", "--net", *line])
    assert (done.returncode, done.stderr) == (0, "")
    assert place.counted()["written_bytes"] == 2 * 4 * 2 * 3 * MIB  # clients, processes, segments, rounds
    assert place.counted()["read_bytes"] == 2 * 4 * 2 * MIB


def test_the_applications_of_a_pattern_differ_in_their_injected_delays_alone() -> None:
    component = yaml.safe_load((WORKLOAD / "component.yaml").read_text())
    own = ["--latency", "--bandwidth", "--contention", "--flash-latency", "--flash-bandwidth"]
    for pattern in ("sbb-1", "sbb-2", "checkpoint"):
        kinds = [component["applications"][f"{pattern}{kind}"]["command"] for kind in ("", "-slow", "-real")]
        delays = [[word for word in command if word in own] for command in kinds]
        assert delays == [own, [name for name in own if name != "--contention"], []]
        assert len({tuple(without_delays(command, own)) for command in kinds}) == 1


def without_delays(command: list[str], names: list[str]) -> list[str]:
    """Return a command without these options and their values."""
    dropped = {place + after for place, word in enumerate(command) if word in names for after in (0, 1)}
    return [word for place, word in enumerate(command) if place not in dropped]


WRITES = """
import os, sys
file = os.open(sys.argv[1] + "/file", os.O_RDWR | os.O_CREAT)
for number in range(int(sys.argv[2])): os.write(file, bytes([number]) * (1 << 20))
"""


def test_the_report_states_the_memory_that_was_used(place: Place) -> None:
    """It grows with the data until both levels are full."""
    options = ["--ram-cache-size", 32, "--flash-cache-size", 32, "--latency", 20000]
    used = {}
    for mebibytes in (4, 16, 128):
        place.python(WRITES, mebibytes, options=options)
        used[mebibytes] = place.counted()["memory_mib"]
    assert used[4] + 16 < used[16]
    assert used[16] + 16 < used[128] < 32 + 32 + 16


def test_a_trial_on_slurm(small: Path, slurm: Slurm, tmp_path: Path) -> None:
    printed = try_trial(small, tmp_path, "checkpoint", "--runner", "slurm", "--set", "worker-threads=3")
    assert "outcome: completed" in printed
    assert metrics_in(printed)["seconds"] > 0


def test_a_cache_that_the_memory_does_not_hold_is_infeasible(small: Path, tmp_path: Path, programs_start: None) -> None:
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
    for pattern in ("sbb-1", "sbb-2", "checkpoint"):
        study = yaml.safe_load((WORKLOAD / "studies" / f"{pattern}.yml").read_text())
        assert study["application"] == pattern
        assert list(study["parameters"]) == study["only"]
        tuned |= set(study["only"])
        parameters = [OrdinalParameter(name, tuple(one["values"])) for name, one in study["parameters"].items()]
        everything = Space.build(parameters, study.get("constraints", [])).enumerate(500)
        assert everything is not None
        for name, one in study["parameters"].items():
            if name.endswith(("worker-threads", "destagers")):
                assert (min(one["values"]), max(one["values"])) == (1, 16)
        if "flash-cache-size" in study["only"]:
            sizes = {(int(one["ram-cache-size"]), int(one["flash-cache-size"])) for one in everything}
            assert sizes == {(16, 100), (16, 150), (40, 100), (40, 150), (80, 100)}
        default = {name: component["parameters"][name]["default"] for name in study["only"]}
        assert default in everything
        assert default == {name: one["default"] for name, one in study["parameters"].items()}
    assert tuned == set(component["parameters"])
