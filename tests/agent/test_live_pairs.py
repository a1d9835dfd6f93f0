"""Trials of live studies: pairs by the coin, decisions, kept settings, budgets; the old settings always come back."""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.agent.test_live import (
    FAULTS,
    close_service,
    end_agent,
    end_supervisor,
    kill_agent,
    kill_both,
    kill_supervisor,
    number,
    stop_agent,
    stop_supervisor,
    supervisor,
)
from tests.factories.clock import Clock
from tests.factories.patience import wait_for
from tests.marks import slow_cases
from trimtab_agent._gen import agent_pb2, tuning_pb2
from trimtab_components.pairs import candidate_first

pytestmark = pytest.mark.usefixtures("programs_start")

# A system whose settings and latency are files. Without the file it has its own settings.
COMPONENT = """
name: live
parameters:
  size: {{type: int, min: 1, max: 64, default: 4}}
live:
  instances: [{instances}]
  apply: {{command: [./apply.sh, "{system}/{{instance}}"], timeout: {timeout}}}
  revert: {{command: [./revert.sh, "{system}/{{instance}}"], timeout: 2}}
  verify: {{command: [./show.sh, "{system}/{{instance}}"]}}
  metrics:
    latency: {{type: file, file: "{system}/{{instance}}.latency", every: 0.1}}
    slow: {{type: file, file: "{system}/{{instance}}.slow", every: 0.1}}
    requests: {{type: file, file: "{system}/requests", every: 0.1}}
  guards:
    limit: {{metric: latency, above: 1000, for: 0.2}}
    relative: {{metric: latency, above_control: 3, for: 0.2}}
  warm_up: 0.05
  block: 0.4
  away: {away}
"""
SEED = "5e" * 32
SIZE = 8


class System:
    """The live system: its latency and slow requests depend on whose settings are in force."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "requests").write_text("100")
        for name in ("one", "two", "three"):
            self.tell(name, latency=(10.0, 10.0), slow=(1.0, 1.0))

    def tell(self, name: str = "one", **values: tuple[float, float]) -> None:
        """Set what is read under the incumbent and under the candidate."""
        for metric, (incumbent, candidate) in values.items():
            for who, value in (("incumbent", incumbent), ("candidate", candidate)):
                self._put(f"{name}.{who}.{metric}", f"{value}")
            now = candidate if self.own(name) else incumbent
            self._put(f"{name}.{metric}", f"{now}")

    def _put(self, name: str, text: str) -> None:
        (self.folder / f"{name}.new").write_text(text)
        (self.folder / f"{name}.new").replace(self.folder / name)

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


TELL = 'for m in latency slow; do cp "$1.{who}.$m" "$1.$m.new" && mv "$1.$m.new" "$1.$m"; done'
APPLY = f'cat > "$1.new" && mv "$1.new" "$1" && {TELL.format(who="candidate")}'
REVERT = f'rm -f "$1"; {TELL.format(who="incumbent")}'


@pytest.fixture
def install(agent: AgentProcess, system: System) -> Callable[..., AgentProcess]:
    """Return a function that installs the component and a policy, and starts the agent."""

    def make(
        *options: str,
        instances: str = "one, two",
        apply: str = APPLY,
        revert: str = "",
        keep: str = "",
        policy: str = "live: {}",
        away: float = 60,
        timeout: float = 5,
    ) -> AgentProcess:
        folder = agent.components / "live"
        folder.mkdir(exist_ok=True)
        text = COMPONENT.format(system=system.folder, instances=instances, away=away, timeout=timeout)
        if keep:
            command = f'  keep: {{command: [./keep.sh, "{system.folder}/{{instance}}"]}}\n'
            text = text.replace("  metrics:\n", f"{command}  metrics:\n")
        (folder / "component.yaml").write_text(text)
        scripts = {
            "apply.sh": apply,
            "revert.sh": f"{revert}{REVERT}",
            "keep.sh": keep,
            "show.sh": 'cat "$1" 2>/dev/null || cat "$1.own" 2>/dev/null || echo \'{"size": 4}\'',
        }
        for name, script in scripts.items():
            (folder / name).write_text(f"#!/bin/sh\n{script}\n")
            (folder / name).chmod(0o755)
        rules = agent.folder / "policy.yaml"
        rules.write_text(policy)
        rules.chmod(0o600)
        return agent.start("--policy", str(rules), *options)

    return make


def plan(**changed: Any) -> agent_pb2.LivePlan:
    given: dict[str, Any] = {
        "design": "switchback",
        "least_pairs": 6,
        "most_pairs": 8,
        "min_gain": 0.03,
        "objective": "latency",
        "deviation": 0.05,
        "seed": SEED,
    }
    return agent_pb2.LivePlan(**{**given, **changed})


def chain_holds(live: tuning_pb2.LiveResult) -> bool:
    """Return whether each entry's hash follows from the entries before."""
    before = ""
    for one in live.audit:
        before = hashlib.sha256(f"{before}\n{one.time:.6f}\n{one.kind}\n{one.text}".encode()).hexdigest()
        if one.hash != before:
            return False
    return True


def offer(far_side: FarSide, wanted: agent_pb2.LivePlan, size: int = SIZE, application: str = "one") -> str:
    return far_side.offer("live", application=application, metrics=("latency",), plan=wanted, size=size)


# --- decisions


def test_a_gain_is_found_by_pairs_in_the_order_of_the_coin(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install()
    system.tell(latency=(10.0, 8.0))
    settled = far_side.outcome(offer(far_side, plan()))
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason
    live = settled.live
    assert (live.decision, len(live.pairs), live.kept) == ("keep", 6, False)
    assert [pair.candidate_first for pair in live.pairs] == [candidate_first(SEED, pair) for pair in range(1, 7)]
    assert live.pairs[0].candidate == pytest.approx(math.log(8))
    assert live.pairs[0].incumbent == pytest.approx(math.log(10))
    assert dict(live.pairs[0].candidate_metrics) == {"latency": 8, "slow": 1, "requests": 100}
    assert live.effect == pytest.approx(math.log(0.8), abs=0.01)
    assert live.low < live.effect < live.high < 0
    assert {name: value.integer for name, value in live.incumbent.items()} == {"size": 4}
    assert list(live.instances) == ["one"]
    assert settled.metrics["latency"] == pytest.approx(8)
    assert chain_holds(live)
    kinds = [entry.kind for entry in live.audit]
    assert (kinds[0], kinds[1], kinds[-1]) == ("plan", "apply", "revert")
    assert system.own() is None
    assert not list((agent.state / "live").glob("*.json"))


def test_a_loss_ends_a_trial_early_and_a_metric_can_be_maximized(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    install()
    system.tell(latency=(10.0, 8.0))
    settled = far_side.outcome(offer(far_side, plan(maximize=True)))
    assert (settled.outcome, settled.live.decision) == (Outcome.OUTCOME_COMPLETED, "harm")
    assert len(settled.live.pairs) == 3
    assert settled.live.effect == pytest.approx(math.log(0.8), abs=0.01)
    assert not settled.live.HasField("low")
    assert system.own() is None


@pytest.mark.parametrize(
    ("design", "instances", "expected"), [("crossover", "one, two", "keep"), ("canary", "one, two, three", "keep")]
)
def test_instances_are_compared_at_the_same_time(
    install: Callable[..., AgentProcess],
    far_side: FarSide,
    system: System,
    design: str,
    instances: str,
    expected: str,
) -> None:
    """The other instances are twice as slow, which is no effect."""
    install(instances=instances)
    system.tell(latency=(10.0, 8.0))
    for name in ("two", "three"):
        system.tell(name, latency=(20.0, 16.0))
    settled = far_side.outcome(offer(far_side, plan(design=design)))
    assert (settled.outcome, settled.live.decision) == (Outcome.OUTCOME_COMPLETED, expected), settled.reason
    assert settled.live.effect == pytest.approx(math.log(0.8), abs=0.01)
    assert set(settled.live.instances) == ({"one", "two"} if design == "crossover" else {"one"})
    assert (system.own("one"), system.own("two"), system.own("three")) == (None, None, None)


def test_a_guard_that_compares_takes_the_other_instance_at_the_same_time(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    """A load that makes both slow breaks nothing; a candidate that is slower than the other one does."""
    install()
    lease = offer(far_side, plan(design="crossover", most_pairs=1000, deviation=5.0))
    wait_for(lambda: system.own("one") or system.own("two"))
    for factor in (2.0, 4.0, 8.0):
        for name in ("one", "two"):
            system.tell(name, latency=(10 * factor, 10 * factor))
        time.sleep(0.5)
    assert lease not in far_side.settled
    for name in ("one", "two"):
        system.tell(name, latency=(80.0, 400.0))
    settled = far_side.outcome(lease)
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_INFEASIBLE, "live_guard_broken")
    assert settled.reason_values["guard"] == "relative"
    assert settled.live.decision == "guard"
    assert "guard" in [entry.kind for entry in settled.live.audit]
    assert (system.own("one"), system.own("two")) == (None, None)


def test_a_guard_of_the_study_may_be_stricter(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    install()
    system.tell(latency=(10.0, 25.0))
    strict = agent_pb2.LiveGuard(name="limit", metric="latency", above=20, for_seconds=0.1)
    settled = far_side.outcome(offer(far_side, plan(guards=[strict])))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_INFEASIBLE, "live_guard_broken")
    assert settled.reason_values["limit"] == "20"
    assert system.own() is None


# --- budget and time


@pytest.mark.parametrize("amount", [{"left": 420.0}, {"left": -1.0, "most": 0.01, "period": 420.0}])
def test_a_trial_ends_before_a_total_failure_could_exceed_the_budget(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System, amount: dict[str, float]
) -> None:
    """The candidate has 60 more slow requests a second; a total failure of 3.4 s costs 340 of 100 a second.

    Before a study's first pair the service knows no rate, and the supervisor takes that of its readings.
    """
    agent = install()
    system.tell(latency=(10.0, 10.0), slow=(1.0, 61.0))
    budget = agent_pb2.LiveBudget(name="slow", slow="slow", of="requests", **amount)
    settled = far_side.outcome(offer(far_side, plan(budgets=[budget], most_pairs=1000, deviation=5.0)))
    assert settled.live.decision == "budget", settled.reason
    cost = settled.live.cost["slow"]
    assert 10 < cost < 420
    lines = (agent.state / "live" / "live.one.ledger").read_text().split("\n")
    blocks = {entry["block"]: entry for line in lines if line for entry in [json.loads(line)]}
    assert sum(entry["cost"]["slow"] for entry in blocks.values()) == pytest.approx(cost)
    assert all(entry["reported"] for entry in blocks.values())
    assert settled.live.pairs[0].load == pytest.approx(100)
    assert system.own() is None


@pytest.mark.parametrize("design", ["switchback", "crossover"])
def test_the_cost_of_a_killed_supervisor_is_in_the_next_result(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System, design: str
) -> None:
    """It is the most that the block can have cost. The next trial may begin on another of the instances."""
    agent = install()
    budget = agent_pb2.LiveBudget(name="slow", slow="slow", of="requests", left=1e9)
    lease = offer(far_side, plan(budgets=[budget], design=design, most_pairs=1000, deviation=5.0))
    wait_for(lambda: system.own() or system.own("two"))
    os.kill(supervisor(agent), signal.SIGKILL)
    settled = far_side.outcome(lease)
    assert (settled.reason_code, settled.live.decision) == ("live_no_agent", "stopped")
    assert chain_holds(settled.live)
    assert [entry.kind for entry in settled.live.audit][-1] == "revert"
    assert (system.own(), system.own("two")) == (None, None)
    second = "one" if design == "switchback" else "two"
    wanted = plan(budgets=[budget], design=design, most_pairs=1)
    again = far_side.outcome(offer(far_side, wanted, application=second))
    assert again.live.cost["slow"] > 300


@pytest.mark.parametrize("fault", ["agent ends", "lease lost"])
def test_what_a_trial_has_cost_is_reported_also_if_its_result_does_not_count(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System, fault: str
) -> None:
    """The agent's ledger has it as reported, so that no later result would contain it."""
    agent = install()
    system.tell(slow=(1.0, 61.0))
    budget = agent_pb2.LiveBudget(name="slow", slow="slow", of="requests", left=1e9)
    lease = offer(far_side, plan(budgets=[budget], most_pairs=1000, deviation=5.0))
    wait_for(system.own)
    wait_for(lambda: not system.own())
    if fault == "agent ends":
        agent.stop()
        settled = far_side.settled[lease]
        assert settled.outcome == Outcome.OUTCOME_RELEASED
    else:
        with far_side.changed:
            far_side.lost.add(lease)
            del far_side.granted[lease]
        far_side.wait_for(lambda: lease in far_side.refused)
        [settled] = [one for one in far_side.settlements if one.lease == lease]
    assert system.own() is None
    lines = (agent.state / "live" / "live.one.ledger").read_text().split("\n")
    blocks = {entry["block"]: entry for line in lines if line for entry in [json.loads(line)]}
    assert all(entry["reported"] for entry in blocks.values())
    assert settled.live.cost["slow"] > 10
    assert settled.live.cost["slow"] == pytest.approx(sum(entry["cost"]["slow"] for entry in blocks.values()))


def test_a_trial_ends_with_its_window(install: Callable[..., AgentProcess], far_side: FarSide, system: System) -> None:
    install()
    settled = far_side.outcome(offer(far_side, plan(seconds_left=0.3)))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_FAILED, "live_window")
    assert settled.live.decision == "window"
    settled = far_side.outcome(offer(far_side, plan(seconds_left=8.0, most_pairs=1000, deviation=5.0)))
    assert (settled.outcome, settled.live.decision) == (Outcome.OUTCOME_COMPLETED, "window"), settled.reason
    assert settled.live.pairs
    assert system.own() is None


def test_a_trial_waits_for_the_administrators_hours(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    now = time.localtime()
    later = (now.tm_hour + 3) % 24
    install(policy=f'live: {{hours: "{later:02d}:00-{later:02d}:30"}}')
    lease = offer(far_side, plan())
    wait_for(lambda: "live.hours" in far_side.waiting.get(lease, ""))
    assert (
        f"begins at {time.strftime('%a', time.localtime(time.time() + 3 * 3600))} {later:02d}:00"
        in (far_side.waiting[lease])
    )
    far_side.to_cancel[lease] = "the study was stopped"
    assert far_side.outcome(lease).outcome == Outcome.OUTCOME_CANCELLED
    assert system.own() is None


# --- kept settings


def kept(far_side: FarSide, system: System, **changed: Any) -> tuning_pb2.LiveResult:
    """Run a trial whose candidate is kept, and return its result."""
    system.tell(latency=(10.0, 8.0))
    settled = far_side.outcome(offer(far_side, plan(keep=True, **changed)))
    assert (settled.outcome, settled.live.decision, settled.live.kept) == (Outcome.OUTCOME_COMPLETED, "keep", True)
    assert system.own() == {"size": SIZE}
    return settled.live


def test_a_proven_candidate_stays_until_somebody_reverts_it(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install()
    live = kept(far_side, system)
    assert [entry.kind for entry in live.audit][-1] == "keep"
    place = ["--state-dir", str(agent.state)]
    told = run_agent_command(["live", "status", *place]).stdout
    assert "live.one: settings of trial study/1 are kept, under guards, since" in told
    assert "size=8" in told
    assert "the old settings are in force" in run_agent_command(["live", "revert", *place]).stdout
    assert system.own() is None
    assert "the last kept ones were taken back" in run_agent_command(["live", "status", *place]).stdout


def test_a_broken_guard_takes_kept_settings_back(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install()
    kept(far_side, system)
    system.tell(latency=(10.0, 2000.0))
    wait_for(lambda: system.own() is None)
    place = ["--state-dir", str(agent.state)]
    wait_for(lambda: "guard limit: latency was 2000" in run_agent_command(["live", "status", *place]).stdout)


def test_the_next_trial_begins_from_the_kept_settings_and_goes_back_to_them(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install()
    kept(far_side, system)
    settled = far_side.outcome(offer(far_side, plan(maximize=True, min_gain=0.5, most_pairs=2), size=16))
    assert settled.outcome == Outcome.OUTCOME_COMPLETED, settled.reason
    assert settled.live.incumbent["size"].integer == SIZE
    assert not settled.live.kept
    assert system.own() == {"size": SIZE}
    assert (
        "settings of trial study/1 are kept"
        in run_agent_command(["live", "status", "--state-dir", str(agent.state)]).stdout
    )
    refused = far_side.outcome(far_side.offer("live", application="one", size=9))
    assert (refused.outcome, refused.reason_code) == (Outcome.OUTCOME_FAILED, "live_kept")
    assert system.own() == {"size": SIZE}
    agent.stop()
    assert system.own() is None


def test_both_instances_of_a_crossover_keep_the_candidate(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install()
    system.tell("two", latency=(10.0, 8.0))
    live = kept(far_side, system, design="crossover")
    assert set(live.instances) == {"one", "two"}
    assert system.own("two") == {"size": SIZE}
    # A trial on one of them leaves the other under its guards.
    settled = far_side.outcome(offer(far_side, plan(most_pairs=1), size=16, application="two"))
    assert settled.live.incumbent["size"].integer == SIZE
    assert (system.own("one"), system.own("two")) == ({"size": SIZE}, {"size": SIZE})
    # A guard that is broken on one instance takes the settings back on all.
    system.tell("one", latency=(10.0, 2000.0))
    wait_for(lambda: (system.own("one"), system.own("two")) == (None, None))
    assert run_agent_command(["live", "stop", "--state-dir", str(agent.state)]).returncode == 0
    assert system.own("two") is None


# --- what people see


def test_the_service_sees_pairs_and_guards_and_can_have_kept_settings_taken_back(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = install()
    system.tell(latency=(10.0, 8.0))
    lease = offer(far_side, plan(keep=True))
    far_side.wait_for(lambda: far_side.seen.get("one") and far_side.seen["one"].looks)
    now = far_side.seen["one"]
    assert (now.component, now.state, now.lease) == ("live", "running", lease)
    assert now.phase in ("switch", "warm_up", "block", "revert")
    assert now.settings["size"].integer == (SIZE if now.candidate else 4)
    guards = {guard.name: guard for guard in now.guards}
    assert (guards["limit"].limit, guards["limit"].above) == (1000, True)
    assert guards["limit"].value in (8, 10)
    # A guard that compares holds for the candidate alone.
    assert guards["relative"].HasField("limit") == now.candidate
    assert now.looks[0].value == pytest.approx(math.log(0.8))
    assert now.pairs == len(now.looks)

    assert far_side.outcome(lease).live.kept
    far_side.wait_for(lambda: far_side.seen["one"].state == "kept")
    assert (far_side.seen["one"].lease, far_side.seen["one"].settings["size"].integer) == (lease, SIZE)
    assert system.own() == {"size": SIZE}
    far_side.to_revert = "ada has stopped the study"
    far_side.wait_for(lambda: far_side.seen["one"].state == "idle")
    assert system.own() is None
    assert "ada has stopped the study" in far_side.seen["one"].reason
    assert not list((agent.state / "live").glob("*.revert"))


# --- the dead man's switch


@pytest.mark.parametrize("seed", [0, *slow_cases("20 moments of each fault; one shows the same", *range(1, 20))])
@pytest.mark.parametrize("design", ["switchback", *slow_cases("switchback shows the same", "crossover")])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_old_settings_are_put_back_after_a_fault_among_pairs(
    install: Callable[..., AgentProcess],
    far_side: FarSide,
    system: System,
    fault: Callable[[AgentProcess, FarSide], None],
    design: str,
    seed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The fault comes at a random moment of a pair, and a switch may be under way."""
    agent = install(away=1, apply=f"sleep 0.1; {APPLY}; sleep 0.1")
    lease = offer(far_side, plan(design=design, most_pairs=1000, deviation=5.0))
    records = [agent.state / "live" / f"live.{name}.json" for name in ("one", "two")]
    wait_for(records[0].exists if design == "switchback" else lambda: any(one.exists() for one in records))
    time.sleep(random.Random(f"{design} {seed}").uniform(0, 3.0))
    in_force = [name for name in ("one", "two") if system.own(name)]
    began = time.monotonic()
    fault(agent, far_side)
    wait_for(lambda: not any(one.exists() for one in records), "the records are gone")
    seconds = time.monotonic() - began
    assert (system.own("one"), system.own("two")) == (None, None)
    assert lease not in far_side.settled or far_side.settled[lease].outcome != Outcome.OUTCOME_COMPLETED
    with capsys.disabled():
        print(f"\npairs {design} {fault.__name__} {seed}: {in_force or 'none'} in force, back after {seconds:.2f} s")
    if fault is stop_agent:
        os.kill(number(agent), signal.SIGCONT)


@pytest.mark.parametrize("seed", [0, *slow_cases("20 moments of each fault; one shows the same", *range(1, 20))])
@pytest.mark.parametrize("fault", FAULTS)
def test_kept_settings_need_the_agent_and_their_guard_but_not_the_service(
    install: Callable[..., AgentProcess],
    far_side: FarSide,
    system: System,
    fault: Callable[[AgentProcess, FarSide], None],
    seed: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The fault comes at a random moment after the result, which may not be settled yet."""
    agent = install(away=1)
    system.tell(latency=(10.0, 8.0))
    lease = offer(far_side, plan(keep=True))
    record = agent.state / "live" / "live.one.json"
    wait_for(lambda: record.exists() and json.loads(record.read_text())["kept"])
    of_supervisor = {kill_supervisor: signal.SIGKILL, stop_supervisor: signal.SIGSTOP, end_supervisor: signal.SIGTERM}
    watching = supervisor(agent) if fault in (*of_supervisor, kill_both) else 0
    time.sleep(random.Random(f"kept {seed}").uniform(0, 1.0))
    began = time.monotonic()
    if fault in of_supervisor:
        os.kill(watching, of_supervisor[fault])
    elif fault is kill_both:
        os.kill(number(agent), signal.SIGSTOP)
        os.kill(watching, signal.SIGKILL)
        agent.kill()
        agent.start("--policy", str(agent.folder / "policy.yaml"))
    else:
        fault(agent, far_side)
    if fault is close_service:
        far_side_is_away = time.monotonic() + 3
        wait_for(lambda: time.monotonic() > far_side_is_away)
        assert system.own() == {"size": SIZE}
        return
    wait_for(lambda: not record.exists(), "the record is gone")
    seconds = time.monotonic() - began
    assert system.own() is None
    with capsys.disabled():
        print(f"\nkept {fault.__name__} {seed}: back after {seconds:.2f} s")
    if fault is stop_agent:
        os.kill(number(agent), signal.SIGCONT)
    elif fault in (kill_agent, end_agent):
        agent.start("--policy", str(agent.folder / "policy.yaml"))
        assert far_side.outcome(lease).live.decision in ("keep", "stopped")
        assert system.own() is None


def test_an_apply_that_hangs_ends_the_trial(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    install(apply=f"{APPLY}; sleep 1000", timeout=1)
    settled = far_side.outcome(offer(far_side, plan()))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_INFEASIBLE, "live_not_applied")
    assert "has not ended within 1 s" in settled.reason
    assert system.own() is None


def test_a_guard_that_breaks_while_a_command_hangs_ends_it(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    install(apply=f"{APPLY}; sleep 1000", timeout=500)
    system.tell(latency=(10.0, 2000.0))
    settled = far_side.outcome(offer(far_side, plan()))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_INFEASIBLE, "live_guard_broken")
    assert system.own() is None


def test_a_full_disk_ends_the_trial_and_the_old_settings_come_back(
    agent: AgentProcess, install: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent.state.mkdir()
    options = ["-t", "tmpfs", "-o", "size=48m", "none", str(agent.state)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        install()
        lease = offer(far_side, plan(most_pairs=1000, deviation=5.0))
        wait_for(system.own)
        with (agent.state / "filler").open("wb") as filler:
            while True:
                try:
                    filler.write(bytes(1 << 20))
                    filler.flush()
                except OSError:
                    break
        with suppress(OSError), (agent.state / "rest").open("wb", buffering=0) as rest:
            while rest.write(bytes(512)):
                pass
        record = agent.state / "live" / "live.one.json"
        wait_for(lambda: not record.exists(), "the old settings are in force")
        assert system.own() is None
        (agent.state / "filler").unlink()
        settled = far_side.outcome(lease)
        assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_FAILED, "live_not_stored")
        agent.stop()
    finally:
        agent.clear_away()
        subprocess.run(["umount", "-l", str(agent.state)], check=True)


def test_a_clock_that_is_set_back_changes_nothing(
    install: Callable[..., AgentProcess],
    far_side: FarSide,
    system: System,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    try:
        for name, text in clock.variables.items():
            monkeypatch.setenv(name, text)
        install(policy="live: {exposure: 0.5}")
        lease = offer(far_side, plan(most_pairs=1000, deviation=5.0, seconds_left=3000.0))
        wait_for(system.own)
        clock.set(-3600)
        for _ in range(2):
            wait_for(lambda: not system.own())
            wait_for(system.own)
        assert lease not in far_side.settled
        system.tell(latency=(10.0, 2000.0))
        settled = far_side.outcome(lease)
        assert settled.reason_code == "live_guard_broken"
        assert chain_holds(settled.live)
        assert system.own() is None
    finally:
        clock.close()


# --- what an agent refuses


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (
            {"guards": [agent_pb2.LiveGuard(name="limit", metric="latency", above=2000, for_seconds=0.1)]},
            "looser than the component's: its limit is above 2000, and the component's is 1000",
        ),
        (
            {"guards": [agent_pb2.LiveGuard(name="limit", metric="latency", above=20, for_seconds=5)]},
            "it allows the limit to be broken for 5 s, and the component for 0.2 s",
        ),
        (
            {"guards": [agent_pb2.LiveGuard(name="limit", metric="slow", above=20)]},
            "its metric is slow, and the component guards latency",
        ),
        (
            {"guards": [agent_pb2.LiveGuard(name="relative", metric="latency", above=20)]},
            "its limit is above 20, and the component's is above_control 3",
        ),
        ({"guards": [agent_pb2.LiveGuard(name="own", metric="none", above=20)]}, "metric 'none' is not one of latency"),
        ({"guards": [agent_pb2.LiveGuard(name="own", metric="slow")]}, "it needs a limit"),
        ({"design": "mixed"}, "live.design of the study is 'mixed'. Component 'live' allows switchback, crossover"),
        ({"design": "crossover"}, "needs 2 instances, and component 'live' has 1 (one). Use design: switchback"),
        ({"objective": "none"}, "live.objective of the study is 'none'. Component 'live' allows one of its metrics"),
        ({"block": -1.0}, "live.block of the study is -1.0"),
        ({"most_pairs": 0}, "live.pairs.most of the study is 0"),
        ({"min_gain": 1.5}, "live.min_gain of the study is 1.5"),
        ({"seed": ""}, "live.seed of the study is ''"),
        (
            {"budgets": [agent_pb2.LiveBudget(name="own", slow="lost", of="requests", left=1)]},
            "live.budget.own.slow of the study is 'lost'",
        ),
        ({"instances": 3}, "several instances at a time: '3' (rule live.instances: at most 1"),
    ],
)
def test_a_plan_that_does_not_suit_the_machine(
    install: Callable[..., AgentProcess], far_side: FarSide, system: System, wanted: dict[str, Any], text: str
) -> None:
    install(instances="one", policy="live: {instances: 1}")
    settled = far_side.outcome(offer(far_side, plan(**wanted)))
    assert settled.outcome == Outcome.OUTCOME_FAILED
    assert text in settled.reason
    assert system.own() is None
