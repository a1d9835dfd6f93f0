"""Tests of tune.py with trials on this machine."""

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import trimtab
from tests.agent.workloads.openmpi_collectives.mpi import WORKLOAD, look_up, mpirun, with_rules
from tests.agent.workloads.shared import check_refusal, module_of, offering, run_script
from tests.factories.service import EmbeddedService


@pytest.fixture(scope="module")
def service(
    open_mpi: None, embedded_service: EmbeddedService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """The variables by which tune.py finds the service, which has an agent with the workload."""
    with offering(WORKLOAD, embedded_service, tmp_path_factory.mktemp("agent")) as variables:
        yield variables


@pytest.mark.slow("a whole study; the trial shows what it runs")
def test_tune(service: dict[str, str], benchmark: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.conf"
    asked = ["--collectives", "bcast", "--sizes", "8192,4096", "--ranks", "2", "--trials", "4", "--check", "8"]
    asked += ["--pairs", "6", "--rules", str(file), "--name", "tested"]
    answer = run_script(WORKLOAD, "tune", *asked, **service)
    assert answer.returncode == 0, answer.stderr
    with trimtab.Client(service["TRIMTAB_URL"], token=service["TRIMTAB_TOKEN"]) as client:
        names = [f"tested-bcast-{size}-2ranks" for size in (4096, 8192)]
        assert sorted(study.name for study in client.list_studies(name_prefix="tested-bcast-")) == names
        small, great = (client.get_study(name) for name in names)
        assert (small.state, great.state) == ("COMPLETED", "COMPLETED")
        first, trials = small.trials(), great.trials()
        assert {trial.params["bytes"] for trial in trials} == {8192}
        # the results of the smaller size, except Open MPI's own decision, were added before everything else
        added = [trial for trial in trials if trial.origin == "added"]
        known = [json.dumps({**trial.params, "bytes": 8192}, sort_keys=True) for trial in first]
        assert added
        assert added[0].metrics.keys() == {"median_us", "mean_us", "max_us"}
        for trial in added:
            assert json.dumps(trial.params, sort_keys=True) in known
            assert trial.params["bcast_algorithm"] != "ignore"
        assert sum(trial.origin in ("suggested", "default", "replicate") for trial in trials) == 4
        numbers = module_of(WORKLOAD, "algorithms").identifiers()["bcast"]
        for study, size in ((small, 4096), (great, 8192)):
            algorithm = 0
            if study.verdict is not None and study.verdict.proven:
                assert study.recommendation is not None
                algorithm = numbers[str(study.recommendation.params["bcast_algorithm"])]
            assert look_up(file.read_text(), "bcast", 2, size)[0] == algorithm
        assert mpirun("-n", "2", *with_rules(file), benchmark, "bcast", "8192", "0.01").returncode == 0
        # the same command again measures nothing a second time
        written = file.read_text()
        file.unlink()
        assert run_script(WORKLOAD, "tune", *asked, **service).returncode == 0
        assert file.read_text() == written
        assert len(client.get_study(names[1]).trials()) == len(trials)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--collectives", "bcast,scatter"],
            "--collectives: 'scatter' is not allowed. Use bcast, gather, reduce, allreduce",
        ),
        (["--sizes", "4k"], "--sizes: '4k' is not allowed. Use 4096, 8192, "),
        (["--sizes", "4096,,8192"], "--sizes: '' is not allowed. Use 4096, 8192, "),
        (["--ranks", "1"], "--ranks: '1' is not allowed. Use 2 to 4096"),
        (["--trials", "0"], "--trials: 0 is not allowed. Use 1 or more"),
        (["--pairs", "3"], "--pairs: 3 is not allowed. Use 0, or 6 or more"),
        (["--check", "7"], "--check: 7 is not allowed. Use 8 or more"),
        (["--rules", "/nowhere/rules.conf"], "--rules: '/nowhere/rules.conf' is not allowed. Use a file in a folder"),
    ],
)
def test_tune_refuses(service: dict[str, str], arguments: list[str], message: str) -> None:
    check_refusal(run_script(WORKLOAD, "tune", *arguments, **service), message)


def test_tune_without_mpirun(open_mpi: None, tmp_path: Path, programs_start: None) -> None:
    ompi_info = shutil.which("ompi_info")
    assert ompi_info is not None
    (tmp_path / "ompi_info").symlink_to(ompi_info)
    answer = run_script(WORKLOAD, "tune", PATH=str(tmp_path))
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        f"error: mpirun is not in the PATH of {socket.gethostname()}, and verifies the rules"
    )
    assert "openmpi-bin" in answer.stderr
    assert "--pairs 0" in answer.stderr
