"""Tests of tune.py where trials run through Slurm."""

from pathlib import Path

import pytest

from tests.agent.workloads.openmpi_collectives.mpi import WORKLOAD
from tests.agent.workloads.shared import module_of, offering, run_script
from tests.factories.service import EmbeddedService
from tests.factories.slurm import Slurm

rules = module_of(WORKLOAD, "rules")


@pytest.mark.slow("a whole study; the trial shows what it runs")
def test_tune_where_trials_run_through_slurm(
    open_mpi: None, slurm: Slurm, own_service: EmbeddedService, tmp_path: Path
) -> None:
    """The benchmark runs in jobs, and tune.py checks in an allocation whether it can verify the rules."""
    own_service.start()
    asked = ["--collectives", "bcast", "--sizes", "4096", "--ranks", "2", "--trials", "3", "--check", "8"]
    asked += ["--pairs", "6", "--rules", str(tmp_path / "rules.conf"), "--launcher", "salloc --quiet --nodes=1"]
    with offering(WORKLOAD, own_service, tmp_path, "--runner", "slurm") as variables:
        answer = run_script(WORKLOAD, "tune", *asked, **variables)
    assert answer.returncode == 0, answer.stderr
    assert "Trying whether the rules can be verified by salloc --quiet --nodes=1" in answer.stderr
    assert "Rules written to" in answer.stdout
    jobs = [name for state, name, _ in slurm.jobs().values() if state == "COMPLETED"]
    trials = [name for name in jobs if name.startswith("trimtab-")]
    assert len(trials) >= 3
    assert len(jobs) > len(trials), "the allocation"


def test_rules_are_verified_in_an_allocation(open_mpi: None, slurm: Slurm, tmp_path: Path) -> None:
    tune_module = module_of(WORKLOAD, "tune")
    file = tmp_path / "rules.conf"
    file.write_text(rules.render([rules.Rule("bcast", 2, 4096, 1), rules.Rule("reduce", 2, 8192, 99)]))
    options = tune_module.arguments(
        ["--rules", str(file), "--pairs", "2", "--launcher", "salloc --quiet --nodes=1 --exclusive"]
    )
    case = tune_module.Case("bcast", 2, 4096)
    pairs: list[tuple[int, float, float]] = []
    node = tune_module.follow_verification(options, [case], lambda *pair: pairs.append(pair))
    assert node in slurm.nodes
    assert [number for number, _, _ in pairs] == [0, 0]
    assert all(without > 0 and ruled > 0 for _, without, ruled in pairs)
    assert [path.name for path in tmp_path.iterdir()] == ["rules.conf"], "the build is removed"
    # the processes there use the file: an algorithm that Open MPI does not have fails
    with pytest.raises(Exception, match=r"mpirun .* ended with status"):
        tune_module.follow_verification(options, [tune_module.Case("reduce", 2, 8192)])
    options.launcher = ["no-such-launcher"]
    with pytest.raises(Exception, match="--launcher: 'no-such-launcher' cannot be started: No such file"):
        tune_module.follow_verification(options, [])
    options.launcher = ["salloc", "--quiet", "--partition=nowhere"]
    with pytest.raises(Exception, match="invalid partition specified: nowhere"):
        tune_module.follow_verification(options, [])
