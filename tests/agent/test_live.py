"""Trials of a live system: whatever happens, the old settings are in force afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.factories.patience import wait_for
from tests.marks import slow_cases
from trimtab_components.schema import Scalar

pytestmark = pytest.mark.usefixtures("programs_start")

# A system whose settings are a file. Without the file it has its own.
COMPONENT = """
name: live
parameters:
  size: {{type: int, min: 1, max: 64, default: 4}}
  restarting: {{type: int, min: 1, max: 64, default: 4}}
  durable: {{type: boolean, default: true}}
live:
  instances: [one, two]
  apply: {{command: [./apply.sh, "{system}/{{instance}}"], timeout: {timeout}}}
  revert: {{command: [./revert.sh, "{system}/{{instance}}"], timeout: 2}}
  verify: {{command: [./show.sh, "{system}/{{instance}}"]}}
  fallback: {{command: [touch, "{system}/drained"]}}
  restart: [restarting]
  forbidden: [durable]
  metrics:
    latency: {{type: file, file: "{system}/latency", every: 0.1}}
    requests: {{type: command, command: [cat, "{system}/requests"], path: count, kind: counter, every: 0.1}}
  guards:
    limit: {{metric: latency, above: 100, for: 0.2}}
    relative: {{metric: latency, above_control: 3, for: 0.2}}
  warm_up: 0.2
  block: {block}
  away: 1
"""
BLOCK = 1000.0


class System:
    """The live system: what is in force, and what it tells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.tell(10.0)
        (folder / "requests").write_text('{"count": 5}')

    def tell(self, latency: float) -> None:
        """Set the latency that is read."""
        (self.folder / "next").write_text(f"{latency}")
        (self.folder / "next").replace(self.folder / "latency")

    def own(self, instance: str = "one") -> dict[str, object] | None:
        """Return the settings of a trial that are in force; None if the old ones are."""
        try:
            found: dict[str, object] = json.loads((self.folder / instance).read_text())
        except FileNotFoundError:
            return None
        return found


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path / "system")


@pytest.fixture
def install(agent: AgentProcess, system: System) -> Callable[..., AgentProcess]:
    """Return a function that installs the component with its commands and a policy, and starts the agent."""

    def make(
        *options: str, block: float = BLOCK, apply: str = "", revert: str = "", policy: str = "live: {}"
    ) -> AgentProcess:
        folder = agent.components / "live"
        folder.mkdir(exist_ok=True)
        text = COMPONENT.format(system=system.folder, block=block, timeout=5)
        (folder / "component.yaml").write_text(text)
        scripts = {
            "apply.sh": apply or 'cat > "$1.new" && mv "$1.new" "$1"',
            "revert.sh": revert or 'rm -f "$1"',
            "show.sh": 'cat "$1" 2>/dev/null || echo \'{"size": 4, "restarting": 4, "durable": true}\'',
        }
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
        rules = agent.folder / "policy.yaml"
        rules.write_text(policy)
        rules.chmod(0o600)
        return agent.start("--policy", str(rules), *options)

    return make


def supervisor(agent: AgentProcess) -> int:
    """Wait for the supervisor of the trial and return its number."""

    def find() -> int:
        for path in (agent.state / "leases").glob("*/pid"):
            number, _, _ = path.read_text().partition(" ")
            if number and psutil.pid_exists(int(number)):
                return int(number)
        return 0

    return wait_for(find)


def number(agent: AgentProcess) -> int:
    assert agent.process is not None
    return agent.process.pid


def test_a_trial_is_measured_and_the_old_settings_are_put_back(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install(block=0.6)
    lease = far_side.offer("live", application="one", metrics=("latency",), size=8)
    wait_for(lambda: system.own() == {"size": 8, "restarting": 4})
    system.tell(20.0)
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason
    assert 10 <= settled.metrics["latency"] <= 20
    assert settled.metrics["requests"] == 0
    assert system.own() is None
    assert not list((agent.state / "live").glob("*.json"))


@pytest.mark.parametrize(("latency", "guard", "limit"), [(150.0, "limit", "100"), (50.0, "relative", "30")])
def test_a_broken_guard_ends_the_trial(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System, latency: float, guard: str, limit: str
) -> None:
    install(block=2.0)
    lease = far_side.offer("live", application="one", size=8)
    wait_for(system.own)
    system.tell(latency)
    settled = far_side.outcome(lease)
    assert settled.outcome == Outcome.OUTCOME_INFEASIBLE
    assert settled.reason_code == "live_guard_broken"
    values = dict(settled.reason_values)
    assert (values["guard"], values["metric"], values["value"], values["limit"]) == (
        *(guard, "latency"),
        *(f"{latency:g}", limit),
    )
    assert system.own() is None


def test_a_guard_without_a_reading_is_broken(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    install(block=6.0)
    lease = far_side.offer("live", application="one", size=8)
    wait_for(system.own)
    (system.folder / "latency").unlink()
    settled = far_side.outcome(lease)
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_INFEASIBLE, "live_guard_broken")
    assert "latency has no reading" in settled.reason
    assert system.own() is None


def test_settings_before_the_trial_that_break_a_guard_are_not_its_fault(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    system.tell(150.0)
    install()
    settled = far_side.outcome(far_side.offer("live", application="one", size=8))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_FAILED, "live_guard_broken_before")
    assert system.own() is None


@pytest.mark.parametrize(
    ("apply", "text"),
    [
        ("echo no such setting; exit 3", "apply.sh ended with exit code 3: 'no such setting'"),
        ('echo \'{"size": 5, "restarting": 4}\' > "$1"', "verify: size is 5 and should be 8"),
        ("sleep 1000", "apply.sh has not ended within 5 s"),
    ],
)
def test_settings_that_cannot_be_applied(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System, apply: str, text: str
) -> None:
    install(block=0.5, apply=apply)
    settled = far_side.outcome(far_side.offer("live", application="one", size=8))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_INFEASIBLE, "live_not_applied")
    assert text in settled.reason
    assert system.own() is None


def test_a_cancelled_trial_is_taken_back(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    install(block=2.0)
    lease = far_side.offer("live", application="one", size=8)
    wait_for(system.own)
    far_side.to_cancel[lease] = "the study was stopped"
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_CANCELLED
    assert system.own() is None


def test_a_service_that_wants_few_heartbeats_is_not_taken_for_one_that_is_away(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    far_side.heartbeat = 60.0
    install(block=3.0)
    settled = far_side.outcome(far_side.offer("live", application="one", size=8))
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason


def test_two_instances_are_switched_at_once_and_one_by_one_trial(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    install("--slots", "3", block=1.0)
    leases = [
        far_side.offer("live", application=name, size=size) for name, size in (("one", 8), ("one", 9), ("two", 7))
    ]
    sizes: set[object] = set()

    def are_settled() -> bool:
        sizes.update(own["size"] for name in ("one", "two") if (own := system.own(name)) is not None)
        return all(lease in far_side.settled for lease in leases)

    wait_for(are_settled)
    assert sizes == {7, 8, 9}
    assert {far_side.settled[lease].outcome for lease in leases} == {Outcome.OUTCOME_COMPLETED}
    assert (system.own("one"), system.own("two")) == (None, None)


# --- the dead man's switch


def kill_agent(agent: AgentProcess, far_side: FarSide) -> None:
    agent.kill()


def kill_supervisor(agent: AgentProcess, far_side: FarSide) -> None:
    os.kill(supervisor(agent), signal.SIGKILL)


def kill_both(agent: AgentProcess, far_side: FarSide) -> None:
    other = supervisor(agent)
    os.kill(number(agent), signal.SIGSTOP)
    os.kill(other, signal.SIGKILL)
    agent.kill()
    agent.start("--policy", str(agent.folder / "policy.yaml"))


def stop_agent(agent: AgentProcess, far_side: FarSide) -> None:
    os.kill(number(agent), signal.SIGSTOP)


def stop_supervisor(agent: AgentProcess, far_side: FarSide) -> None:
    os.kill(supervisor(agent), signal.SIGSTOP)


def end_agent(agent: AgentProcess, far_side: FarSide) -> None:
    agent.stop()


def end_supervisor(agent: AgentProcess, far_side: FarSide) -> None:
    os.kill(supervisor(agent), signal.SIGTERM)


def close_service(agent: AgentProcess, far_side: FarSide) -> None:
    far_side.close()


FAULTS = (
    *(kill_agent, kill_supervisor, kill_both, stop_agent, stop_supervisor, end_agent, end_supervisor),
    close_service,
)
# Faults without a supervisor of the agent that lives: a trial is settled by the next agent.
_AGAIN = (kill_agent, stop_agent, end_agent)


@pytest.mark.parametrize("seed", [0, *slow_cases("20 moments of each fault; one shows the same", *range(1, 20))])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_old_settings_are_put_back_after_a_fault(
    install: Callable[..., AgentProcess],
    far_side: FarSide,
    system: System,
    fault: Callable[[AgentProcess, FarSide], None],
    seed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The fault comes at a random moment of the switch or of the time after it, and an apply may be under way."""
    agent = install(block=1.0, apply='sleep 0.3; cat > "$1.new" && mv "$1.new" "$1"; sleep 0.3')
    lease = far_side.offer("live", application="one", size=8)
    record = agent.state / "live" / "live.one.json"
    wait_for(record.exists)
    time.sleep(random.Random(seed).uniform(0, 1.8))
    in_force = system.own() is not None
    began = time.monotonic()
    fault(agent, far_side)
    wait_for(lambda: not record.exists(), "the record is gone")
    seconds = time.monotonic() - began
    assert system.own() is None
    with capsys.disabled():
        print(f"\n{fault.__name__} {seed}: {'in force' if in_force else 'being applied'}, back after {seconds:.2f} s")
    if fault is close_service:
        return
    if fault is stop_agent:
        os.kill(number(agent), signal.SIGCONT)
    elif fault in _AGAIN:
        agent.start("--policy", str(agent.folder / "policy.yaml"))
    settled = far_side.outcome(lease)
    assert settled.outcome in (
        *(Outcome.OUTCOME_FAILED, Outcome.OUTCOME_RELEASED),
        # The fault came when the trial was about to end.
        Outcome.OUTCOME_COMPLETED,
    )
    assert system.own() is None


def test_a_revert_that_fails_is_tried_again_and_then_the_system_is_left_to_a_person(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install(block=0.5, revert=f'echo tried >> "{system.folder}/tries"; echo out of order; exit 1')
    settled = far_side.outcome(far_side.offer("live", application="one", size=8))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_FAILED, "live_stuck")
    assert (system.folder / "tries").read_text().count("tried") == 3
    assert (system.folder / "drained").exists()
    again = far_side.outcome(far_side.offer("live", application="one", size=9))
    assert (again.outcome, again.reason_code) == (Outcome.OUTCOME_FAILED, "live_stopped")
    assert system.own() == {"size": 8, "restarting": 4}
    place = ["--state-dir", str(agent.state)]
    told = run_agent_command(["live", "status", *place])
    assert told.returncode == 1
    assert "live.one: STUCK: revert.sh ended with exit code 1: 'out of order'" in told.stdout.replace("./", "")
    (agent.components / "live" / "revert.sh").write_text('#!/bin/sh\nrm "$1"\n')
    assert "the old settings are in force" in run_agent_command(["live", "revert", *place]).stdout
    assert system.own() is None
    assert far_side.outcome(far_side.offer("live", application="one", size=9)).outcome == Outcome.OUTCOME_COMPLETED


def test_a_system_that_answers_again_gets_the_old_settings_back(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    """A server that is stopped, for instance, answers neither `revert` nor `verify`."""
    frozen = system.folder / "frozen"
    agent = install(block=6.0, revert=f'[ ! -e "{frozen}" ] || sleep 1000; rm -f "$1"')
    lease = far_side.offer("live", application="one", size=8)
    wait_for(system.own)
    frozen.touch()
    system.tell(150.0)
    assert far_side.outcome(lease).reason_code == "live_stuck"
    assert system.own() == {"size": 8, "restarting": 4}
    frozen.unlink()
    wait_for(lambda: system.own() is None)
    wait_for(lambda: not list((agent.state / "live").glob("*.json")))
    told = run_agent_command(["live", "status", "--state-dir", str(agent.state)])
    assert told.returncode == 1
    assert "Meanwhile the old settings are in force" in told.stdout
    assert far_side.outcome(far_side.offer("live", application="one", size=9)).reason_code == "live_stopped"


def test_a_boot_takes_the_settings_back(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    """All processes are gone, and /run is empty: here the file of the system's settings."""
    agent = install(block=6.0)
    lease = far_side.offer("live", application="one", size=8)
    wait_for(system.own)
    other = supervisor(agent)
    os.kill(number(agent), signal.SIGSTOP)
    os.kill(other, signal.SIGKILL)
    agent.kill()
    (system.folder / "one").unlink(missing_ok=True)
    place = ["--state-dir", str(agent.state)]
    told = run_agent_command(["live", "revert", *place])
    assert (told.returncode, told.stdout) == (0, "live.one: the old settings are in force\n")
    assert "no settings of a trial are in force" in run_agent_command(["live", "status", *place]).stdout
    agent.start("--policy", str(agent.folder / "policy.yaml"))
    assert far_side.outcome(lease).outcome in (Outcome.OUTCOME_FAILED, Outcome.OUTCOME_RELEASED)
    assert system.own() is None


def test_an_administrator_stops_live_trials_and_lets_them_begin_again(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install(block=6.0)
    place = ["--state-dir", str(agent.state)]
    lease = far_side.offer("live", application="one", size=8)
    wait_for(system.own)
    assert "size=8, restarting=4" in run_agent_command(["live", "status", *place]).stdout
    assert run_agent_command(["live", "stop", "one", *place]).returncode == 0
    assert system.own() is None
    assert far_side.outcome(lease).reason_code == "live_stopped"
    assert far_side.outcome(far_side.offer("live", application="one", size=9)).reason_code == "live_stopped"
    assert "stopped" in run_agent_command(["live", "status", *place]).stdout
    run_agent_command(["live", "clear", "one", *place])
    lease = far_side.offer("live", application="one", size=9)
    wait_for(system.own)
    refused = run_agent_command(["live", "stop", "three", *place])
    assert (refused.returncode, refused.stderr) == (
        2,
        "trimtab-agent: no instance 'three' was switched by this agent; known: live.one\n",
    )
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_COMPLETED


# --- what an agent refuses


@pytest.mark.parametrize(
    ("policy", "params", "text"),
    [
        ("live: {studies: [other]}", {"size": 8}, "does not allow study 'study' (rule live.studies: other)"),
        ("live: {}", {"restarting": 8}, "another value of restarting, which needs a restart: '8' (rule live.restart"),
        ("live: {}", {"durable": False}, "durable is False, but a live trial must keep its default True"),
    ],
)
def test_a_trial_that_the_administrator_does_not_allow(
    install: Callable[..., AgentProcess],
    far_side: FarSide,
    system: System,
    policy: str,
    params: dict[str, Scalar],
    text: str,
) -> None:
    install(block=0.5, policy=policy)
    offer: Callable[..., str] = far_side.offer
    settled = far_side.outcome(offer("live", application="one", **params))
    assert text in settled.reason
    assert system.own() is None


def test_an_agent_whose_policy_does_not_mention_live_systems_offers_none(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install(policy="{}")
    agent.wait_until_ready()
    settled = far_side.outcome(far_side.offer("live", application="one", size=8))
    assert "does not allow live component 'live' (rule live: the policy has no such key)" in settled.reason
    assert system.own() is None
    assert "components=basic" in agent.log


def test_calibration_says_which_guards_the_present_settings_break(
    install: Callable[..., AgentProcess], agent: AgentProcess, system: System
) -> None:
    install()
    system.tell(150.0)
    told = run_agent_command(["live", "calibrate", str(agent.components / "live"), "--seconds", "1"])
    assert told.returncode == 1
    assert "guard relative: never broken" in told.stdout
    assert "guard limit: " in told.stdout
    assert "latency was 150, above 100" in told.stdout
    assert "it was beyond its limit for up to 1 s: with `for: 3` it holds" in told.stdout
    assert system.own() is None
