"""An agent on a real Slurm that is killed."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agent.conftest import AgentProcess, processes_of
from tests.agent.far_side import FarSide, Outcome
from tests.agent.slurm_runner.jobs import jobs_of
from tests.agent.test_daemon_faults import settled_once
from tests.factories.patience import wait_for
from tests.factories.slurm import Slurm
from tests.marks import slow_cases


def test_agent_killed_with_jobs_pending_running_and_done(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm
) -> None:
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes[2:])}", "state=drain", "reason=test")
    options = ("--runner", "slurm", "--slots", "3", "--slurm-option=--exclusive")
    agent.start(*options)
    done, running = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    wait_for(lambda: sorted((place / "runs").read_text().split()) == ["1.0", "2.0"])
    pending = far_side.offer("gated", application="gate", x=3.0)
    wait_for(lambda: sorted(jobs_of(slurm, agent.state)) == ["PENDING", "RUNNING", "RUNNING"])
    agent.kill()
    # its node must not be free for the pending one
    (folder,) = (lease for lease in agent.state.glob("leases/*") if '"x": 1.0' in (lease / "lease.json").read_text())
    node = json.loads((folder / "owner").read_text())[2]
    slurm.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
    (place / "gate1.0").touch()
    wait_for((folder / "result.json").exists)
    agent.start(*options)
    assert far_side.outcome(done).metrics["value"] == 1.0
    wait_for(lambda: sorted(jobs_of(slurm, agent.state)) == ["COMPLETED", "PENDING", "RUNNING"])
    slurm.run("scontrol", "update", f"nodename={','.join(slurm.nodes)}", "state=resume")
    for x in (2.0, 3.0):
        (place / f"gate{x}").touch()
    assert far_side.outcome(running).metrics["value"] == 2.0
    assert far_side.outcome(pending).metrics["value"] == 3.0
    for lease in (done, running, pending):
        settled_once(far_side, lease)
    assert sorted((place / "runs").read_text().split()) == ["1.0", "2.0", "3.0"]
    assert len(jobs_of(slurm, agent.state)) == 3


def test_agent_killed_while_it_submits(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm, programs: Callable[[str, str], None]
) -> None:
    """sbatch has submitted the job, but nobody hears of it."""
    programs("sbatch", f'$REAL "$@"; touch {place}/submitted; sleep 3')
    agent.start("--runner", "slurm")
    lease = far_side.offer("gated", application="gate", x=4.0)
    wait_for((place / "submitted").exists)
    agent.kill()
    assert not list(agent.state.glob("leases/*/job"))
    agent.start("--runner", "slurm")
    (place / "gate4.0").touch()
    assert far_side.outcome(lease).metrics["value"] == 4.0
    settled_once(far_side, lease)
    assert (place / "runs").read_text() == "4.0\n"
    assert len(jobs_of(slurm, agent.state)) == 1


@pytest.mark.parametrize(
    "seconds",
    [0.2, *slow_cases("more moments of the same", 0.05, 0.5, 1.0)],
)
def test_agent_killed_at_any_moment(agent: AgentProcess, far_side: FarSide, slurm: Slurm, seconds: float) -> None:
    options = ("--runner", "slurm", "--slots", "4")
    agent.start(*options)
    far_side.wait_for(lambda: far_side.registrations)
    leases = []
    for number in range(3):
        leases += [far_side.offer("gated", x=float(number)), far_side.offer("gated", x=float(number) + 0.5)]
        time.sleep(seconds)
        agent.kill()
        agent.start(*options)
    for number, lease in enumerate(leases):
        settled = far_side.outcome(lease)
        assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled
        assert settled.metrics["value"] == number / 2
        settled_once(far_side, lease)
    agent.wait_until_ready()
    agent.stop()
    # results are there some moments before Slurm has ended their jobs
    wait_for(lambda: not processes_of(agent.state))
    wait_for(lambda: set(jobs_of(slurm, agent.state)) <= {"COMPLETED", "CANCELLED"})
    assert jobs_of(slurm, agent.state)
