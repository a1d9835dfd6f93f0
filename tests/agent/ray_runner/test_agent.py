"""An agent on a real Ray."""

import subprocess
import sys
from pathlib import Path

from tests.agent.conftest import AgentProcess, processes_of
from tests.agent.far_side import FarSide, Outcome
from tests.agent.test_daemon_faults import settled_once
from tests.factories.patience import wait_for
from tests.factories.ray import CPUS, RayHead


def on(head: RayHead, *options: str) -> list[str]:
    return ["--runner", "ray", "--ray-address", head.dashboard, *options]


def test_agent_killed_with_jobs_pending_running_and_done(
    agent: AgentProcess, far_side: FarSide, tmp_path: Path, ray_session: RayHead
) -> None:
    options = on(ray_session, "--slots", "3", f"--ray-option=--num-cpus={CPUS // 2}")
    agent.start(*options)
    done, running = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    wait_for(lambda: sorted((tmp_path / "runs").read_text().split()) == ["1.0", "2.0"])
    pending = far_side.offer("gated", application="gate", x=3.0)
    wait_for(lambda: len(list(agent.state.glob("leases/*/job"))) == 3)
    agent.kill()
    (tmp_path / "gate1.0").touch()
    wait_for(lambda: list(agent.state.glob("leases/*/result.json")))
    agent.start(*options)
    assert far_side.outcome(done).metrics["value"] == 1.0
    for x in (2.0, 3.0):
        (tmp_path / f"gate{x}").touch()
    assert far_side.outcome(running).metrics["value"] == 2.0
    assert far_side.outcome(pending).metrics["value"] == 3.0
    for lease in (done, running, pending):
        settled_once(far_side, lease)
    assert sorted((tmp_path / "runs").read_text().split()) == ["1.0", "2.0", "3.0"]


def test_cancelled_by_the_service_and_given_back(agent: AgentProcess, far_side: FarSide, ray_session: RayHead) -> None:
    """The agent stays small, too."""
    agent.start(*on(ray_session, "--slots", "2"))
    cancelled, released = (far_side.offer("gated", application="gate", x=x) for x in (1.0, 2.0))
    far_side.wait_for(lambda: all(far_side.elapsed.get(lease, 0.0) > 0.3 for lease in (cancelled, released)))
    assert agent.process
    status = Path(f"/proc/{agent.process.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) < 60 * 1024
    far_side.to_cancel[cancelled] = "pruned"
    settled = far_side.outcome(cancelled)
    assert (settled.outcome, settled.reason) == (Outcome.OUTCOME_CANCELLED, "pruned")
    agent.stop()
    assert far_side.settled[released].outcome == Outcome.OUTCOME_RELEASED
    assert list((agent.state / "leases").iterdir()) == []
    assert processes_of(agent.state) == []


def test_the_agent_imports_nothing_of_ray(programs_start: None) -> None:
    code = "import sys, trimtab_agent.main, trimtab_agent.runners.ray; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
