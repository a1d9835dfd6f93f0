"""Roll-outs of kept settings: stages, checks, durable settings, and the way back on all instances, newest first."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.agent.conftest import AgentProcess, run_agent_command
from tests.agent.far_side import FarSide, Outcome
from tests.agent.test_live_pairs import SIZE, System, chain_holds, install, plan, system
from tests.factories.patience import wait_for
from trimtab_agent._gen import agent_pb2, tuning_pb2

pytestmark = pytest.mark.usefixtures("programs_start")
__all__ = ["install", "system"]  # fixtures

NAMES = ("one", "two", "three")
INSTANCES = ", ".join(NAMES)
# It writes the settings into the system's own ones, and `revert` removes those of the trial.
KEEP = 'cat > "$1.own"'


def tell_all(system: System, incumbent: float, candidate: float) -> None:
    for name in NAMES:
        system.tell(name, latency=(incumbent, candidate))


def offer(far_side: FarSide, wanted: agent_pb2.LivePlan) -> str:
    return far_side.offer("live", application="one", metrics=("latency",), plan=wanted, size=SIZE)


def stage(**changed: Any) -> agent_pb2.LivePlan:
    return plan(**{"keep": True, "step": "stage", "design": "canary", "instances": 1, "min_gain": 0.01, **changed})


def check(**changed: Any) -> agent_pb2.LivePlan:
    return plan(**{"keep": True, "step": "watch", "design": "crossover", "instances": 2, **changed})


def on_two(far_side: FarSide, system: System) -> tuning_pb2.LiveResult:
    """Have the settings kept on the first instance, and by a stage on the second one; return the stage's result."""
    tell_all(system, 10.0, 8.0)
    first = far_side.outcome(offer(far_side, plan(keep=True, design="crossover", places=["one", "two"], instances=1)))
    assert first.live.kept, first.reason
    assert [system.own(name) for name in NAMES] == [{"size": SIZE}, None, None]
    second = far_side.outcome(offer(far_side, stage(places=["two", "three"], in_force=["one"])))
    assert (second.live.decision, second.live.kept, second.live.rolled_back) == ("keep", True, False), second.reason
    assert [system.own(name) for name in NAMES] == [{"size": SIZE}, {"size": SIZE}, None]
    return second.live


def reverts(system: System) -> list[str]:
    """Return the instances in the order in which the old settings were put back last."""
    files = [system.folder / f"{name}.reverted" for name in NAMES]
    return [one.stem for one in sorted((one for one in files if one.exists()), key=lambda one: one.stat().st_mtime_ns)]


@pytest.fixture
def rolling(install: Callable[..., AgentProcess], system: System) -> Callable[..., AgentProcess]:
    """Return a function that starts the agent for three instances, with a revert that leaves a trace."""

    def make(*, keep: str = "") -> AgentProcess:
        return install(instances=INSTANCES, revert='touch "$1.reverted"; ', keep=keep)

    return make


def test_a_stage_compares_with_instances_of_the_earlier_settings_and_keeps(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = rolling()
    live = on_two(far_side, system)
    assert list(live.instances) == ["two"]
    assert live.incumbent["size"].integer == 4
    assert chain_holds(live)
    agent.stop()
    assert [system.own(name) for name in NAMES] == [None, None, None]


@pytest.mark.parametrize("broken", ["one", "two"])
def test_a_broken_guard_on_one_instance_takes_the_settings_back_on_all(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System, broken: str
) -> None:
    agent = rolling()
    on_two(far_side, system)
    system.tell(broken, latency=(10.0, 2000.0))
    wait_for(lambda: [system.own(name) for name in NAMES] == [None, None, None])
    assert reverts(system)[-2:] == [broken, "two" if broken == "one" else "one"]
    told = run_agent_command(["live", "status", "--state-dir", str(agent.state)]).stdout
    assert told.count("guard limit: latency was 2000") == 2


def test_a_stage_whose_gain_does_not_repeat_takes_everything_back(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    rolling()
    tell_all(system, 10.0, 8.0)
    system.tell("two", latency=(10.0, 13.0))
    far_side.outcome(offer(far_side, plan(keep=True, places=["one"], instances=1)))
    assert system.own("one")
    settled = far_side.outcome(offer(far_side, stage(places=["two", "three"], in_force=["one"])))
    assert (settled.live.decision, settled.live.kept, settled.live.rolled_back) == ("harm", False, True)
    assert [system.own(name) for name in NAMES] == [None, None, None]
    assert reverts(system)[-2:] == ["two", "one"]


def test_a_check_that_finds_harm_takes_everything_back_newest_first(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    rolling()
    on_two(far_side, system)
    tell_all(system, 10.0, 13.0)
    settled = far_side.outcome(offer(far_side, check(places=["one", "three"], in_force=["one", "two"])))
    assert (settled.outcome, settled.live.decision, settled.live.rolled_back) == (
        *(Outcome.OUTCOME_COMPLETED, "harm", True),
    )
    assert settled.live.effect == pytest.approx(0.262, abs=0.01)
    assert [system.own(name) for name in NAMES] == [None, None, None]
    assert reverts(system)[-2:] == ["two", "one"]


def test_checks_add_to_the_evidence_and_the_settings_stay_under_their_guards(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    rolling()
    on_two(far_side, system)
    wanted = check(places=["two", "three"], in_force=["one", "two"], earlier=[-0.2, -0.2, -0.2], most_pairs=6)
    settled = far_side.outcome(offer(far_side, wanted))
    assert (settled.live.decision, settled.live.kept, len(settled.live.pairs)) == ("keep", True, 3), settled.reason
    assert settled.live.high < 0
    assert [system.own(name) for name in NAMES] == [{"size": SIZE}, {"size": SIZE}, None]
    system.tell("two", latency=(10.0, 2000.0))
    wait_for(lambda: [system.own(name) for name in NAMES] == [None, None, None])


@pytest.mark.parametrize("works", [True, False])
def test_the_last_check_extends_the_settings_and_has_them_written_durably(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System, works: bool
) -> None:
    agent = rolling(keep=KEEP if works else "exit 1")
    on_two(far_side, system)
    wanted = check(places=["one", "three", "two"], in_force=["one", "two"], instances=2, durable=True)
    settled = far_side.outcome(offer(far_side, wanted))
    assert (settled.live.decision, settled.live.kept) == ("keep", True), settled.reason
    if works:
        wait_for(lambda: not list((agent.state / "live").glob("*.json")))
        assert [system.own(name) for name in NAMES] == [None, None, None]
    else:
        assert [system.own(name) for name in NAMES] == [{"size": SIZE}] * 3
    agent.stop()
    found = [json.loads(own.read_text()) if (own := system.folder / f"{name}.own").exists() else None for name in NAMES]
    assert found == ([{"size": SIZE}] * 3 if works else [None] * 3)
    assert [system.own(name) for name in NAMES] == [None, None, None]


def test_a_step_ends_if_the_settings_are_no_longer_in_force_elsewhere(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    agent = rolling()
    on_two(far_side, system)
    place = ["--state-dir", str(agent.state)]
    assert run_agent_command(["live", "revert", "one", *place]).returncode == 0
    settled = far_side.outcome(offer(far_side, check(places=["two", "three"], in_force=["one", "two"])))
    assert (settled.outcome, settled.reason_code) == (Outcome.OUTCOME_FAILED, "live_rolled_back")
    assert "no longer in force on live.one" in settled.reason
    assert settled.live.rolled_back
    assert [system.own(name) for name in NAMES] == [None, None, None]


def test_an_interrupted_check_leaves_what_was_kept(
    rolling: Callable[..., AgentProcess], far_side: FarSide, system: System
) -> None:
    rolling()
    on_two(far_side, system)
    wanted = check(places=["one", "three"], in_force=["one", "two"], most_pairs=1000, deviation=5.0)
    lease = offer(far_side, wanted)
    wait_for(lambda: system.own("three"))
    far_side.to_cancel[lease] = "a person has stopped it"
    settled = far_side.outcome(lease)
    assert (settled.outcome, settled.live.kept, settled.live.rolled_back) == (Outcome.OUTCOME_CANCELLED, False, False)
    wait_for(lambda: [system.own(name) for name in NAMES] == [{"size": SIZE}, {"size": SIZE}, None])
