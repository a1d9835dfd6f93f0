"""The daemon when things break: whatever is killed or away, every lease is settled exactly once."""

import os
import signal
import subprocess
import time

import psutil
import pytest

from tests.agent.conftest import AgentProcess, processes_of
from tests.agent.far_side import FarSide, Outcome
from tests.agent.test_daemon import trials_of
from tests.factories.patience import wait_for
from tests.marks import slow_cases


def settled_once(far_side: FarSide, lease: str) -> None:
    """One settlement was accepted, and whatever was sent again was the same."""
    sent = {request.SerializeToString(deterministic=True) for request in far_side.settlements if request.lease == lease}
    assert len(sent) == 1
    assert far_side.refused == []


def test_killed_while_a_trial_runs_it_is_followed_again(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    lease = far_side.offer("basic", application="slow", x=3.0)
    wait_for((agent.folder / "started").exists)
    agent.kill()
    (agent.folder / "started").unlink()
    agent.start()
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_COMPLETED
    assert settled.metrics["value"] == 3.0
    assert settled.elapsed.ToNanoseconds() > 1.4e9  # the whole run
    assert not (agent.folder / "started").exists()  # it was not started again
    settled_once(far_side, lease)


def test_killed_and_started_after_the_trial_has_ended(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    lease = far_side.offer("basic", application="gated", x=4.0)
    wait_for((agent.folder / "started").exists)
    agent.kill()
    (agent.folder / "gate").touch()
    wait_for(lambda: not processes_of(agent.state))
    assert lease not in far_side.settled
    agent.start()
    assert far_side.outcome(lease).metrics["value"] == 4.0
    settled_once(far_side, lease)


def test_killed_between_the_answer_and_its_arrival(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    """The settlement was accepted, but the agent never heard so."""
    far_side.lose_answers["SettleLease"] = 2
    agent.start()
    lease = far_side.offer("basic", x=5.0)
    far_side.wait_for(lambda: lease in far_side.settled)
    agent.kill()
    agent.start()
    wait_for(lambda: not list((agent.state / "leases").iterdir()))
    assert len([request for request in far_side.settlements if request.lease == lease]) >= 2
    settled_once(far_side, lease)


def test_machine_gone_while_a_trial_ran(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    """Agent and supervisor end at one moment: the trial is run again, with nothing of the first run left."""
    agent.start()
    lease = far_side.offer("basic", application="gated", x=6.0)
    wait_for((agent.folder / "started").exists)
    agent.kill()
    (folder,) = (agent.state / "leases").iterdir()
    os.kill(int((folder / "pid").read_text().split()[0]), signal.SIGKILL)
    (agent.folder / "started").unlink()
    (agent.folder / "gate").touch()
    agent.start()
    assert far_side.outcome(lease).metrics["value"] == 6.0
    assert (agent.folder / "started").exists()
    settled_once(far_side, lease)


def test_killed_before_the_trial_was_submitted(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    far_side.wait_for(lambda: far_side.registrations)
    agent.kill()
    lease = far_side.offer("basic", x=7.0)
    folder = agent.state / "leases" / "lease-damaged"
    folder.mkdir()
    (folder / "lease.json").write_text("")  # what a power cut can leave
    agent.start()
    assert far_side.outcome(lease).metrics["value"] == 7.0
    assert not folder.exists()


@pytest.mark.parametrize(
    "seconds",
    [
        0.05,
        *slow_cases("more moments of the same", 0.0, 0.02, 0.1, 0.2, 0.35),
    ],
)
def test_killed_at_any_moment(agent: AgentProcess, far_side: FarSide, seconds: float, programs_start: None) -> None:
    """Again and again, some time after a trial was offered."""
    agent.start("--slots", "2")
    far_side.wait_for(lambda: far_side.registrations)
    leases = []
    for number in range(3):
        leases += [far_side.offer("basic", x=float(number)), far_side.offer("basic", x=float(number) + 0.5)]
        time.sleep(seconds)
        agent.kill()
        agent.start("--slots", "2")
    for number, lease in enumerate(leases):
        settled = far_side.outcome(lease)
        assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled
        assert settled.metrics["value"] == number / 2
        settled_once(far_side, lease)
    agent.wait_until_ready()  # the last one may have found nothing left to do
    agent.stop()
    # a killed agent's supervisor ends by itself, some moments after it has left the result
    wait_for(lambda: not processes_of(agent.state))


def test_service_away_while_trials_end(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start("--slots", "2")
    leases = [far_side.offer("basic", application="gated", x=float(number)) for number in range(2)]
    far_side.wait_for(lambda: all(far_side.started.get(lease) for lease in leases))
    far_side.close()
    (agent.folder / "gate").touch()
    wait_for(lambda: len(list(agent.state.glob("leases/*/settlement.json"))) == 2)
    assert far_side.settled == {}
    far_side.open()
    for number, lease in enumerate(leases):
        assert far_side.outcome(lease).metrics["value"] == number
        settled_once(far_side, lease)
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED


def test_service_away_and_agent_killed_and_the_lease_lost_meanwhile(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    """The late result is offered once, refused, and forgotten."""
    agent.start()
    lease = far_side.offer("basic", application="gated")
    far_side.wait_for(lambda: far_side.started.get(lease))
    far_side.close()
    agent.kill()
    (agent.folder / "gate").touch()
    wait_for(lambda: list(agent.state.glob("leases/*/result.json")))
    far_side.lost.add(lease)
    del far_side.granted[lease]
    far_side.open()
    agent.start()
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED
    wait_for(lambda: not list((agent.state / "leases").iterdir()))
    assert far_side.refused == [lease]
    assert lease not in far_side.settled


def test_a_trial_to_be_run_again_is_not_where_its_lease_is_lost(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    lease = far_side.offer("basic", application="gated")
    wait_for((agent.folder / "started").exists)
    agent.kill()
    (folder,) = (agent.state / "leases").iterdir()
    os.kill(int((folder / "pid").read_text().split()[0]), signal.SIGKILL)
    (agent.folder / "started").unlink()
    far_side.lost.add(lease)
    del far_side.granted[lease]
    agent.start()
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED
    assert not (agent.folder / "started").exists()
    assert far_side.refused == []


@pytest.mark.parametrize(
    "method", ["Register", "AcquireLeases", "RenewLeases", "ReportStarted", "SettleLease", "AppendLog"]
)
def test_answers_that_are_lost(agent: AgentProcess, far_side: FarSide, method: str, programs_start: None) -> None:
    far_side.lose_answers[method] = 2
    agent.start()
    leases = [far_side.offer("basic", x=float(number)) for number in range(3)]
    for number, lease in enumerate(leases):
        assert far_side.outcome(lease).metrics["value"] == number
        settled_once(far_side, lease)


def test_supervisor_killed_is_the_machines_fault(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    lease = far_side.offer("basic", application="long")
    wait_for(lambda: list(agent.state.glob("leases/*/pid")))
    far_side.wait_for(lambda: far_side.started.get(lease))
    (pid,) = agent.state.glob("leases/*/pid")
    wait_for(pid.read_text)
    os.kill(int(pid.read_text().split()[0]), signal.SIGKILL)
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_FAILED
    assert "supervisor process was killed" in settled.reason
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED


def test_full_disk_under_the_journal(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.state.mkdir()
    options = ["-t", "tmpfs", "-o", "size=40m", "none", str(agent.state)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        agent.start()
        lease = far_side.offer("basic", application="gated", metrics=("value",), x=8.0)
        wait_for((agent.folder / "started").exists)
        filler = agent.state / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=64k"], capture_output=True, check=False)
        (agent.folder / "gate").touch()
        # the disk space for a result was set aside before its trial began
        settled = far_side.outcome(lease)
        assert settled.outcome == Outcome.OUTCOME_FAILED
        assert settled.reason == "metric 'value': the output could not be stored: No space left on device"
        waiting = far_side.offer("basic", x=9.0)
        wait_for(lambda: "no further trial starts until there is enough space" in agent.log)
        assert waiting not in far_side.granted
        filler.unlink()
        assert far_side.outcome(waiting).metrics["value"] == 9.0
        settled_once(far_side, lease)
        agent.stop()
    finally:
        subprocess.run(["umount", "-l", str(agent.state)], check=True)


def test_a_result_that_cannot_be_journalled_waits(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    agent.start()
    lease = far_side.offer("basic", application="gated", x=8.0)
    wait_for((agent.folder / "started").exists)
    (folder,) = (agent.state / "leases").iterdir()
    obstacle = folder / "settlement.json"
    obstacle.mkdir()
    (agent.folder / "gate").touch()
    wait_for(lambda: "a result cannot be written, waiting for disk space study=study trial=1 " in agent.log)
    assert lease not in far_side.settled
    assert far_side.outcome(far_side.offer("basic")).outcome == Outcome.OUTCOME_COMPLETED  # the others go on
    obstacle.rmdir()
    assert far_side.outcome(lease).metrics["value"] == 8.0
    settled_once(far_side, lease)


def test_nothing_of_a_killed_agent_outlives_its_trials(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    far_side.outcome(far_side.offer("basic"))
    assert agent.process
    idle = psutil.Process(agent.process.pid).children()
    assert idle
    agent.kill()
    wait_for(lambda: not any(process.is_running() for process in idle))


def test_a_trial_whose_folder_cannot_be_reached_for_a_while_goes_on(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    agent.start()
    lease = far_side.offer("basic", application="gated", x=3.0)
    wait_for((agent.folder / "started").exists)
    agent.kill()
    (pipe,) = agent.state.glob("leases/*/alive")
    pipe.rename(aside := pipe.with_name("aside"))
    pipe.symlink_to(pipe)  # too many levels of symbolic links
    agent.start()
    wait_for(lambda: "the folder of a trial cannot be reached, trying again study=study trial=1 " in agent.log)
    assert lease not in far_side.settled
    aside.rename(pipe)
    (agent.folder / "gate").touch()
    assert far_side.outcome(lease).metrics["value"] == 3.0
    settled_once(far_side, lease)


def test_an_internal_fault_of_the_agent_leaves_no_trial_running(
    agent: AgentProcess, far_side: FarSide, monkeypatch: pytest.MonkeyPatch, programs_start: None
) -> None:
    """The service starts a failed trial elsewhere: here it has to be over."""
    (agent.folder / "sitecustomize.py").write_text(
        "import asyncio\n"
        "from trimtab_agent.runners.local import LocalRunner\n"
        "async def wait(self, folder):\n"
        "    while not (folder / 'running').exists(): await asyncio.sleep(0.02)\n"
        "    raise RuntimeError('odd')\n"
        "LocalRunner.wait = wait\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(agent.folder))
    agent.start()
    settled = far_side.outcome(far_side.offer("basic", application="long"))
    assert (settled.outcome, settled.reason) == (Outcome.OUTCOME_FAILED, "the agent failed: RuntimeError: odd")
    assert trials_of(agent) == []
