"""Trials of another user than the agent's: what they can do, and what they cannot read."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import wait_for

USER = "nobody"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start programs as another user")

COMPONENT = r"""
name: other
parameters:
  x: {type: float, min: 0, max: 10, default: 1, flag: "{value}"}
build:
  commands: [[sh, -c, 'id -un > "{build}/builder"; echo built > "{build}/out"']]
applications:
  main:
    command:
      - sh
      - -c
      - 'echo "user=$(id -un) home=$HOME"; cat "{build}/out"; echo 5 > value.txt; grep -i cap /proc/self/status;
        taskset -cp $$; echo "loss=2" >> steps.txt'
  curious:
    command:
      - sh
      - -c
      - 'for one in ../lease.json ../spec.json ../log ../pid ../../../credential ../../../agent-id ../../../lock; do
        cat "$one" 2>&1 | sed "s/^/read: /"; done; ls .. ../.. ../../.. 2>&1; echo x 2>&1 > "{build}/out"; echo done'
  linking: {command: [sh, -c, 'ln -s "SECRET" value.txt; ln -s "SECRET" steps.txt']}
  long: {command: [sh, -c, 'echo begun > begun.txt; setsid sleep 1000 & sleep 1000']}
artifacts: ["*.txt"]
stream:
  - {from: steps.txt, pattern: 'loss=(?P<loss>.*)'}
metrics:
  value: {type: regex, pattern: '(\S+)', from: value.txt}
  seconds: wall_time
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can pass, which `tmp_path` is not."""
    made = Path(tempfile.mkdtemp(prefix="trimtab-agent-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def agent(folder: Path, far_side: FarSide) -> Iterator[AgentProcess]:
    made = AgentProcess(folder, far_side.port)
    secret = folder / "secret"
    secret.write_text("987654321\nloss=987654321\n")
    secret.chmod(0o600)
    made.components.mkdir()
    (made.components / "other.yaml").write_text(COMPONENT.replace("SECRET", str(secret)))
    far_side.enrolments.add("tre_once")
    yield made
    made.clear_away()


def start(agent: AgentProcess, *options: str) -> None:
    agent.start("--enrol", "tre_once", "--trial-user", USER, *options, token_file=False)
    wait_for(lambda: "ready " in agent.log or not agent.runs())
    assert agent.runs(), agent.log


def log_of(far_side: FarSide, lease: str, last: str) -> str:
    far_side.wait_for(lambda: last in far_side.logs.get(lease, b"").decode())
    return bytes(far_side.logs[lease]).decode()


def test_a_trial_runs_as_the_user(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    start(agent, "--trial-cores", "1")
    for _ in range(2):  # the second uses the build of the first
        lease = far_side.offer("other", metrics=("value",))
        settled = far_side.outcome(lease)
        assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason
        assert dict(settled.metrics)["value"] == 5
        log = log_of(far_side, lease, "affinity list")
        assert f"\nuser={USER} home={pwd.getpwnam(USER).pw_dir}\n" in log
        assert "\nbuilt\n" in log
        assert "CapEff:\t0000000000000000" in log
        assert "CapPrm:\t0000000000000000" in log
        far_side.wait_for(lambda lease=lease: "value.txt" in far_side.artifacts.get(lease, ()))  # type: ignore[misc]
        assert far_side.artifacts[lease]["value.txt"].data == b"5\n"
        assert far_side.measured[lease][1] == {"loss": 2.0}
    [builder] = (agent.state / "builds").glob("*/builder")
    assert builder.read_text().strip() == USER
    assert builder.stat().st_uid == 0


def test_a_trial_can_read_nothing_of_the_agent(agent: AgentProcess, far_side: FarSide, programs_start: None) -> None:
    start(agent)
    lease = far_side.offer("other", application="curious")
    far_side.outcome(lease)
    log = log_of(far_side, lease, "done")
    read = [line for line in log.splitlines() if line.startswith("read: ")]
    assert len(set(read)) == 7
    assert all(line.endswith("Permission denied") for line in read), log
    secret = json.loads((agent.state / "credential").read_text())["secret"]
    assert secret[:12] not in log
    for listed in ("lease.json", "credential", f"{lease}\n"):
        assert f"\n{listed}" not in log
    assert "Permission denied" in log
    [out] = (agent.state / "builds").glob("*/out")
    assert out.read_text() == "built\n"


def test_the_agent_follows_no_link_to_what_the_user_cannot_read(
    agent: AgentProcess, far_side: FarSide, programs_start: None
) -> None:
    start(agent)
    lease = far_side.offer("other", application="linking", metrics=("value",))
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_INFEASIBLE
    assert "not a file of the trial's user" in settled.reason
    assert "987654321" not in settled.reason
    assert lease not in far_side.measured


@pytest.mark.parametrize("killed", [False, True])
def test_cancelling_ends_all_processes_of_the_user(
    agent: AgentProcess, far_side: FarSide, killed: bool, programs_start: None
) -> None:
    start(agent)
    lease = far_side.offer("other", application="long")
    wait_for(lambda: list((agent.state / "leases").glob("*/work/begun.txt")))
    mine = processes(agent.state)
    assert {one.username() for one in mine} == {USER}
    if killed:
        [supervisor] = {one.ppid() for one in mine if one.ppid() != 1 and not is_mine(one.parent(), mine)}
        os.kill(supervisor, signal.SIGKILL)
    else:
        far_side.to_cancel[lease] = "no more"
    wait_for(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in mine))


def is_mine(process: psutil.Process | None, mine: list[psutil.Process]) -> bool:
    return process in mine


def processes(state: Path) -> list[psutil.Process]:
    mark = f"TRIMTAB_JOB={state}"
    found = []
    for one in psutil.process_iter():
        try:
            if any(f"{name}={text}".startswith(mark) for name, text in one.environ().items()):
                found.append(one)
        except psutil.Error:
            continue
    return found


def test_a_user_that_cannot_be_used_is_refused_at_the_start(
    agent: AgentProcess, tmp_path: Path, programs_start: None
) -> None:
    def refused(*options: str, state: Path = agent.state) -> str:
        words = ["run", "--server", f"127.0.0.1:{agent.port}", "--token-file", str(agent.folder / "token")]
        words += ["--components", str(agent.components), "--state-dir", str(state), *options]
        done = run_agent_command(words)
        assert done.returncode == 2, done.stderr
        return done.stderr

    assert "--trial-user 'no-such-user' does not exist" in refused("--trial-user", "no-such-user")
    assert "is the agent's own user" in refused("--trial-user", "root")
    assert "A job of Slurm has one user" in refused("--trial-user", USER, "--runner", "slurm")
    assert "Start them as a user without rights" in refused("--trial-user", USER, "--runner", "ray")
    closed = tmp_path / "state"
    tmp_path.chmod(0o700)
    assert f"that user cannot reach {closed / 'leases'}" in refused("--trial-user", USER, state=closed)
    policy = agent.folder / "policy"
    policy.write_text("trial_user: no-such-user")
    assert "--trial-user 'no-such-user' does not exist" in refused("--policy", str(policy))
    assert "contradicts the policy's trial_user" in refused("--policy", str(policy), "--trial-user", USER)


def test_an_agent_without_rights_is_refused(programs_start: None) -> None:
    code = (
        "import os; from trimtab_agent.runners.trial_user import TrialUser; os.setuid(65534); TrialUser.find('daemon')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "--trial-user daemon needs an agent that runs as root" in done.stderr
