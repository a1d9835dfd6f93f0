"""The roll-out of kept settings in a live study: its trials, its end, and the way back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from service.core.live_results import LiveResult
from service.fleet import live, runs
from service.fleet.grants import Grant
from service.live.models import LiveStudy
from service.live.status import LiveStatus
from service.live.system import state_of
from service.notices.models import Notice
from service.policies.rollout import MOST_TRIES
from service.results.analysis import analyse
from service.studies.change import changing
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import rollouts
from service.tuner.verdict import Level
from service.workers import sweep
from tests.factories.fleet import AGENT, register, study, trial
from tests.factories.live import INCUMBENT, LIVE, acquire_live, compute_all, create_live, result, settle_live

KEPT = [-0.1] * 8


@pytest.fixture(autouse=True)
def agent(principal: Principal) -> None:
    register(principal, name="live", applications=["a", "b", "c"], metrics=[], live=dict(LIVE))


def state(principal: Principal, name: str) -> LiveStudy:
    return state_of(principal, study(principal, name))


def shown(principal: Principal, name: str) -> LiveStatus:
    return live.status(principal, name)


def next_lease(principal: Principal) -> tuple[Grant, dict[str, Any]]:
    """Return the next lease and what its agent is told."""
    (grant,) = acquire_live(principal)
    assert grant.live is not None
    return grant, dict(grant.live)


def keep(principal: Principal, name: str = "", **live_keys: Any) -> tuple[str, dict[str, Any]]:
    """Create a study whose first trial is kept; return its name and the settings."""
    name = create_live(principal, {"approve": "none", "watch": "24h", **live_keys})
    grant, told = next_lease(principal)
    assert (told["step"], told["design"], told["places"], told["instances"]) == ("", "crossover", ["a", "b"], 1)
    settle_live(principal, grant, result(KEPT, "keep", kept=True, instances=("a", "b")))
    return name, {**INCUMBENT, **grant.params}


def end_watch(principal: Principal, name: str) -> None:
    """Let the time of the watch pass."""
    with changing(principal, name, "test") as work:
        rollout = rollouts.of(work.study)
        assert rollout is not None
        assert rollout.since is not None
        rollouts.store(work, replace(rollout, since=rollout.since - rollout.watch))
        work.revise()


def test_kept_settings_go_to_all_instances_are_watched_and_written_durably(principal: Principal) -> None:
    name, settings = keep(principal)
    [kept] = state(principal, name).kept
    assert (kept["instances"], kept["in_force"]) == (["a"], True), (
        "one instance in the first stage, although two swapped"
    )
    rollout = shown(principal, name).rollout
    assert rollout is not None
    assert (rollout.state, rollout.stage, rollout.stages, rollout.held_back) == ("rolling", 1, (1, 2), ("c",))
    assert rollout.reason == "Stage 2 of 2: the settings of trial 1 go to b, compared with c."
    grant, told = next_lease(principal)
    assert (grant.trial, grant.params) == (2, {name: settings[name] for name in grant.params})
    assert (told["step"], told["design"], told["places"], told["in_force"]) == ("stage", "canary", ["b", "c"], ["a"])
    assert trial(principal, name, 2).origin == "rollout"
    settle_live(principal, grant, result(KEPT, "keep", kept=True, instances=("b",)))
    [kept] = state(principal, name).kept
    assert (kept["trial"], kept["instances"]) == (1, ["a", "b"])
    assert state(principal, name).incumbent == settings
    status = shown(principal, name)
    assert status.rollout is not None
    assert (status.rollout.state, status.rollout.held_back, status.rollout.waiting) == ("watching", ("c",), [])

    # The search goes on meanwhile, on the instances with the settings in force.
    grant, told = next_lease(principal)
    assert (told["step"], told["places"]) == ("", ["a", "b"])
    settle_live(principal, grant, result([0.0] * 8, "futile", incumbent=settings))
    grant, told = next_lease(principal)
    end_watch(principal, name)
    settle_live(principal, grant, result([0.0] * 8, "futile", incumbent=settings))

    grant, told = next_lease(principal)
    assert (told["step"], told["design"], told["places"]) == ("watch", "crossover", ["a", "c", "b"])
    assert (told["durable"], told["in_force"], told["instances"]) == (True, ["a", "b"], 2)
    settle_live(principal, grant, result([-0.12] * 8, "keep", kept=True))
    found = state(principal, name)
    assert (found.incumbent, found.kept[0]["instances"]) == (settings, ["a", "b", "c"])
    [check] = found.checks
    assert (check["effect"], check["pairs"], check["steps"]) == (pytest.approx(-0.12), 8, 1)
    assert shown(principal, name).rollout is None
    verdict = analyse(principal, study(principal, name)).verdict
    assert verdict is not None
    assert verdict.level is Level.PROVEN
    assert verdict.gain == pytest.approx(0.095, abs=1e-3)
    assert "compared again with the settings of the start in 8 pairs: 11.3 %" in verdict.conditions
    grant, told = next_lease(principal)
    assert (told["step"], told["places"]) == ("", ["a", "b"])


@pytest.mark.parametrize("at", ["stage", "watch"])
def test_settings_that_were_taken_back_end_the_roll_out(principal: Principal, at: str) -> None:
    name, settings = keep(principal)
    grant, _ = next_lease(principal)
    if at == "watch":
        settle_live(principal, grant, result(KEPT, "keep", kept=True, instances=("b",)))
        end_watch(principal, name)
        grant, told = next_lease(principal)
        if told["step"] == "":
            settle_live(principal, grant, result([0.0] * 8, incumbent=settings))
            grant, _ = next_lease(principal)
    settle_live(principal, grant, result([0.2] * 3, "harm", rolled_back=True))
    found = state(principal, name)
    assert (found.incumbent, found.chain, study(principal, name).rollout) == (INCUMBENT, {}, None)
    [kept] = found.kept
    assert (kept["in_force"], kept["reason"]) == (False, f"Trial {grant.trial} of the roll-out has ended: harm.")
    assert "live.reverted" in access.rows(Notice, principal).values_list("kind", flat=True)
    verdict = analyse(principal, study(principal, name)).verdict
    assert verdict is not None
    assert (verdict.level, verdict.configuration) == (Level.NO_GAIN, INCUMBENT)
    # The search goes on from the old settings.
    grant, told = next_lease(principal)
    assert told["step"] == ""
    assert sum(grant.params[key] != INCUMBENT[key] for key in INCUMBENT) == 1


def test_an_agent_that_finds_the_settings_gone_ends_the_roll_out_without_a_further_attempt(
    principal: Principal,
) -> None:
    name, _ = keep(principal)
    grant, _ = next_lease(principal)
    text = "the kept settings are no longer in force on live.a"
    gone = LiveResult("stopped", rolled_back=True)
    runs.settle(
        principal,
        agent_id=AGENT,
        lease=grant.lease,
        outcome="failed",
        reason=text,
        reason_code="live_rolled_back",
        live=gone,
    )
    compute_all(principal)
    assert (trial(principal, name, 2).state, trial(principal, name, 2).attempt) == ("FAILED", 1)
    assert state(principal, name).kept[0]["reason"] == text
    _, told = next_lease(principal)
    assert told["step"] == ""


def test_a_stage_that_is_interrupted_again_and_again_is_left_out(principal: Principal) -> None:
    name, settings = keep(principal)
    for attempt in range(MOST_TRIES):
        grant, told = next_lease(principal)
        assert (grant.trial, told["step"]) == (2 + attempt, "stage")
        settle_live(principal, grant, result([-0.1] * 2, "window"))
    rollout = shown(principal, name).rollout
    assert rollout is not None
    assert (rollout.state, rollout.in_force, rollout.held_back) == ("watching", ("a",), ("c", "b"))
    assert "It has ended: window." in rollout.reason
    grant, told = next_lease(principal)
    assert (told["step"], told["design"], told["places"]) == ("", "switchback", ["a"])
    assert state(principal, name).incumbent == settings


def test_a_declined_stage_is_left_out_and_a_check_needs_no_approval(principal: Principal) -> None:
    name = create_live(principal, {"approve": "each", "watch": "24h"}, budget={"max_trials": 1})
    live.decide(principal, name, 1, approve=True)
    grant, _ = next_lease(principal)
    settle_live(principal, grant, result(KEPT, "keep", kept=True))
    assert acquire_live(principal) == []
    [plan] = shown(principal, name).plans
    assert {key: value[0] for key, value in plan.changes.items()} == {
        key: INCUMBENT[key] for key, value in grant.params.items() if value != INCUMBENT[key]
    }
    live.decide(principal, name, 2, approve=False, reason="not this week")
    rollout = shown(principal, name).rollout
    assert rollout is not None
    assert (rollout.state, rollout.in_force) == ("watching", ("a",))
    assert rollout.reason.endswith("Its plan was declined: not this week")
    end_watch(principal, name)
    sweep.continue_rollouts()
    _, told = next_lease(principal)
    assert (told["step"], told["places"]) == ("watch", ["a", "c"])


def test_the_end_of_the_search_waits_for_the_roll_out(principal: Principal) -> None:
    name = create_live(principal, {"approve": "none", "watch": "24h"}, budget={"max_trials": 1})
    grant, _ = next_lease(principal)
    settle_live(principal, grant, result(KEPT, "keep", kept=True))
    found = study(principal, name)
    assert (found.state, found.state_reason) == (
        *("ACTIVE", "The search is over. The kept settings are still rolled out or watched."),
    )
    grant, told = next_lease(principal)
    assert told["step"] == "stage"
    settle_live(principal, grant, result(KEPT, "keep", kept=True))
    assert acquire_live(principal) == []
    assert study(principal, name).state == "ACTIVE"
    end_watch(principal, name)
    sweep.continue_rollouts()
    grant, told = next_lease(principal)
    assert told["step"] == "watch"
    settle_live(principal, grant, result(KEPT, "most", kept=True))
    found = study(principal, name)
    assert (found.state, found.state_reason) == ("COMPLETED", "All 1 trials of the budget are done.")
    assert trial(principal, name, 3).state == "COMPLETED"


def test_the_check_of_several_steps_together_proves_their_gain(principal: Principal) -> None:
    register(principal, name="live", applications=["a"], metrics=[], live=dict(LIVE))
    name = create_live(principal)
    settings = dict(INCUMBENT)
    for _ in range(2):
        grant, _ = next_lease(principal)
        settle_live(principal, grant, result(KEPT, "keep", kept=True, incumbent=dict(settings)))
        settings |= grant.params
    end_watch(principal, name)
    grant, told = next_lease(principal)
    while told["step"] == "":
        settle_live(principal, grant, result([0.0] * 8, "futile", incumbent=dict(settings)))
        grant, told = next_lease(principal)
    assert (told["step"], told["design"], told["places"]) == ("watch", "switchback", ["a"])
    settle_live(principal, grant, result([-0.18] * 8, "keep", kept=True))
    verdict = analyse(principal, study(principal, name)).verdict
    assert verdict is not None
    assert verdict.level is Level.PROVEN
    assert verdict.gain == pytest.approx(0.165, abs=1e-3)
    assert verdict.low is not None
