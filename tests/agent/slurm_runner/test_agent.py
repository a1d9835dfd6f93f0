"""An agent on a real Slurm."""

from pathlib import Path

from tests.agent.conftest import AgentProcess
from tests.agent.far_side import FarSide, Outcome
from tests.agent.slurm_runner.jobs import jobs_of
from tests.agent.test_daemon_faults import settled_once
from tests.factories.patience import wait_for
from tests.factories.slurm import Slurm


def test_slurmctld_restarted_while_trials_run_end_and_come(
    agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm
) -> None:
    agent.start("--runner", "slurm", "--slots", "3")
    ending, running = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    wait_for(lambda: sorted((place / "runs").read_text().split()) == ["1.0", "2.0"])
    coming = []

    def while_it_is_away() -> None:
        (place / "gate1.0").touch()
        # the result is there, whatever Slurm says of the job
        assert far_side.outcome(ending).metrics["value"] == 1.0
        coming.append(far_side.offer("gated", x=3.0))
        wait_for(lambda: "cannot be submitted" in agent.log)

    slurm.restart_controller(while_it_is_away)
    assert far_side.outcome(coming[0]).metrics["value"] == 3.0
    assert running not in far_side.settled
    (place / "gate2.0").touch()
    assert far_side.outcome(running).metrics["value"] == 2.0
    for lease in (ending, running, *coming):
        settled_once(far_side, lease)


def test_cancelled_by_the_service(agent: AgentProcess, far_side: FarSide, place: Path, slurm: Slurm) -> None:
    nodes = []
    far_side.before = lambda method, request, context: nodes.append(request.node) if method == "ReportStarted" else None
    agent.start("--runner", "slurm")

    lease = far_side.offer("gated", application="gate", x=1.0)
    far_side.wait_for(lambda: far_side.elapsed.get(lease, 0.0) > 0.3)
    far_side.to_cancel[lease] = "pruned"
    settled = far_side.outcome(lease)
    assert (settled.outcome, settled.reason) == (Outcome.OUTCOME_CANCELLED, "pruned")
    assert settled.elapsed.ToNanoseconds() / 1e9 >= 0.3
    (node,) = nodes
    assert node in slurm.nodes
    wait_for(lambda: set(jobs_of(slurm, agent.state)) == {"CANCELLED"})


def test_sigterm_gives_jobs_back(agent: AgentProcess, far_side: FarSide, slurm: Slurm) -> None:
    agent.start("--runner", "slurm", "--slots", "2")
    leases = [far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0)]
    far_side.wait_for(lambda: all(far_side.started.get(lease) for lease in leases))
    agent.stop()
    for lease in leases:
        assert far_side.settled[lease].outcome == Outcome.OUTCOME_RELEASED
    wait_for(lambda: jobs_of(slurm, agent.state) == ["CANCELLED"] * 2)
    assert list((agent.state / "leases").iterdir()) == []


def test_an_unknown_partition_is_reported_and_the_study_continues(agent: AgentProcess, far_side: FarSide) -> None:
    agent.start("--runner", "slurm", "--slurm-option=--partition=none")
    settled = far_side.outcome(far_side.offer("gated"))
    assert settled.outcome == Outcome.OUTCOME_FAILED
    assert "Invalid partition name specified" in settled.reason
    agent.stop()
    agent.start("--runner", "slurm", "--slurm-option=--partition=short")
    assert far_side.outcome(far_side.offer("gated")).outcome == Outcome.OUTCOME_COMPLETED


def test_the_agent_stays_small(agent: AgentProcess, far_side: FarSide) -> None:
    agent.start("--runner", "slurm")
    far_side.outcome(far_side.offer("gated"))
    assert agent.process
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) < 60 * 1024
