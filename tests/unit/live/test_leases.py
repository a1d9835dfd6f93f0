"""Leases of live trials: when they are granted, what their agents are told, and what their results mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from service.core.live_results import LiveOutcome
from service.core.reasons import data_of
from service.fleet import leases as fleet_leases
from service.fleet import runs, waiting
from service.fleet.models import Lease
from service.live import permission
from service.live.models import LiveLease, LiveStudy, Loss, Plan
from service.live.system import state_of
from service.notices.models import Notice
from service.planning.create import delete_study, update_state
from service.studies.live_spec import Live
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from tests.factories.fleet import AGENT, refused, study, trial
from tests.factories.live import (
    INCUMBENT,
    acquire_live,
    break_guard,
    compute_all,
    create_live,
    journal,
    pairs,
    register_live,
    result,
    settle_live,
)
from trimtab_components.pairs import commitment

BUDGET = {"slow": {"metric": "slow", "of": "requests", "most": 0.01, "per": "day", "rate": 200}}


@pytest.fixture(autouse=True)
def agent(principal: Principal) -> None:
    register_live(principal)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], None]:
    """Return a function that sets the time by which change windows are open or closed."""
    real = permission._window

    def set_time(now: datetime) -> None:
        def look(live: Live, restarts: bool, _: datetime) -> tuple[float, str]:
            return real(live, restarts, now)

        monkeypatch.setattr(permission, "_window", look)

    return set_time


def state(principal: Principal, name: str) -> LiveStudy:
    return state_of(principal, study(principal, name))


def notices(principal: Principal) -> list[str]:
    return list(access.rows(Notice, principal).order_by("pk").values_list("kind", flat=True))


def test_an_agent_is_told_of_the_pairs_and_the_coin_is_committed_first(principal: Principal) -> None:
    live: dict[str, Any] = {"approve": "none", "block": "1m", "pairs": {"least": 4, "most": 8}, "budget": BUDGET}
    live["guards"] = {"latency": {"metric": "latency", "above_control": 1.2, "for": 3}}
    name = create_live(principal, live)
    (grant,) = acquire_live(principal)
    told = grant.live
    assert told is not None
    assert told["design"] == "switchback"
    assert (told["warm_up"], told["block"]) == (2.0, 60.0), "the component's own, and the study's"
    assert (told["least_pairs"], told["most_pairs"], told["min_gain"]) == (4, 8, 0.03)
    assert (told["objective"], told["maximize"], told["deviation"], told["keep"]) == ("latency", False, 0.0, True)
    assert told["guards"] == [{"name": "latency", "metric": "latency", "above_control": 1.2, "for_seconds": 3.0}]
    [budget] = told["budgets"]
    assert budget["left"] == 0.01 * 200 * 86400
    assert (told["seconds_left"], told["original"]) == (0.0, {})
    assert len(told["seed"]) == 64
    [entry] = access.rows(AuditEntry, principal).filter(action="lease.grant")
    assert entry.target == f"study/{name}/agent/{AGENT}"
    assert entry.detail["commitment"] == commitment(told["seed"])
    assert told["seed"] not in str(list(access.rows(AuditEntry, principal).values_list("detail", flat=True)))
    # A grant whose answer was lost is the same one.
    assert [one.live for one in acquire_live(principal)] == [told]
    settle_live(principal, grant, result([-0.01] * 8))
    ended = access.rows(AuditEntry, principal).filter(action="lease.settle").get()
    assert ended.detail["live"]["seed"] == told["seed"]


def test_one_candidate_at_a_time_is_near_the_settings_in_force(principal: Principal) -> None:
    name = create_live(principal)
    keys = set()
    for effect in (0.02, -0.01, 0.01):
        (grant,) = acquire_live(principal)
        assert study(principal, name).open_count == 1
        params = grant.params
        assert abs(float(params["share"]) - 0.5) <= 0.15
        assert sum(params[key] != INCUMBENT[key] for key in INCUMBENT) == 1, "60 % of three is one"
        keys.add(str(params))
        settle_live(principal, grant, result([effect] * 8))
    assert len(keys) == 3


def test_values_are_in_the_users_unit_and_follow_kept_steps(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([-0.1] * 8, "keep", kept=True))
    first = trial(principal, name, 1)
    usual = math.exp(2.0)
    assert first.metrics is not None
    assert first.metrics["latency"] == pytest.approx(usual * math.exp(-0.1))
    assert first.metrics["memory"] == pytest.approx(0.5)
    found = state(principal, name)
    assert found.original == INCUMBENT
    assert found.incumbent == {**INCUMBENT, **grant.params}
    # The load has changed: all latencies are three times as high, and only the ratio counts.
    (grant,) = acquire_live(principal)
    assert grant.live is not None
    assert grant.live["original"] == INCUMBENT
    later = pairs([0.05] * 8, level=2.0 + math.log(3))
    settle_live(principal, grant, result([0.05] * 8, pairs=later, incumbent=found.incumbent))
    second = trial(principal, name, 2)
    assert second.metrics is not None
    assert second.metrics["latency"] == pytest.approx(usual * math.exp(-0.1 + 0.05))
    assert second.live is not None
    assert LiveOutcome.from_json(second.live).incumbent == found.incumbent
    [notice] = access.rows(Notice, principal)
    assert (notice.kind, notice.reason_data["values"]["cause"]["code"]) == ("live.kept", "live_ratio")
    assert notice.reason_data["values"]["cause"]["values"]["pairs"] == 8
    [kept] = state(principal, name).kept
    assert (kept["trial"], kept["in_force"], kept["pairs"]) == (1, True, 8)


def test_other_settings_in_force_than_the_kept_ones_end_what_they_gained(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([-0.1] * 8, "keep", kept=True))
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.0] * 8))
    found = state(principal, name)
    assert (found.incumbent, found.chain) == (INCUMBENT, {})
    assert [one["in_force"] for one in found.kept] == [False]
    assert notices(principal) == ["live.kept", "live.reverted"]


def test_earlier_pairs_tell_the_deviation(principal: Principal) -> None:
    create_live(principal)
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.1, -0.1, 0.1, -0.1]))
    (grant,) = acquire_live(principal)
    assert grant.live is not None
    assert grant.live["deviation"] == pytest.approx(math.sqrt(0.04 / 3))


def test_a_repeated_settlement_changes_nothing(principal: Principal) -> None:
    name = create_live(principal, {"approve": "none", "budget": BUDGET})
    (grant,) = acquire_live(principal)
    found = result([-0.1] * 8, "keep", kept=True, cost={"slow": 5.0})
    settle_live(principal, grant, found)
    before = state(principal, name)
    settle_live(principal, grant, found)
    after = state(principal, name)
    assert (after.kept, after.settled, after.freedom) == (before.kept, before.settled, before.freedom)
    assert access.rows(Loss, principal).count() == 1
    refused("lease_already_settled", lambda: settle_live(principal, grant, result([-0.2] * 8)))


@pytest.mark.parametrize(
    ("agent_cost", "slow", "counted"),
    [
        # 8 blocks of 10 s with 3 slow requests a second in place of 1 of 200.
        (0.0, 3.0, 160.0),
        (500.0, 3.0, 500.0),
        # A gain gives no credit.
        (0.0, 0.5, None),
    ],
)
def test_the_larger_count_of_what_was_lost_is_believed(
    principal: Principal, agent_cost: float, slow: float, counted: float | None
) -> None:
    create_live(principal, {"approve": "none", "budget": BUDGET})
    (grant,) = acquire_live(principal)
    cost = {"slow": agent_cost} if agent_cost else {}
    settle_live(principal, grant, result([0.1] * 8, "harm", cost=cost, pairs=pairs([0.1] * 8, slow=slow)))
    losses = list(access.rows(Loss, principal))
    assert [one.counted for one in losses] == ([] if counted is None else [pytest.approx(counted)])
    if counted is not None:
        (grant,) = acquire_live(principal)
        assert grant.live is not None
        assert grant.live["budgets"][0]["left"] == pytest.approx(172_800 - counted)


@pytest.mark.parametrize(("cost", "counted"), [(100.0, 2400.0), (5000.0, 5000.0)])
def test_what_a_trial_has_cost_counts_if_its_result_comes_too_late(
    principal: Principal, cost: float, counted: float
) -> None:
    """An expired lease counts as a total failure, unless its trial has cost more."""
    create_live(principal, {"approve": "none", "budget": BUDGET})
    (grant,) = acquire_live(principal)
    overdue = access.rows(Lease, principal).filter(id=grant.lease)
    overdue.update(expires_at=datetime(2026, 1, 1, tzinfo=UTC))
    fleet_leases.expire(fleet_leases.overdue())
    assert [one.counted for one in access.rows(Loss, principal)] == [2400]
    late = result([], "stopped", cost={"slow": cost})
    for _ in range(2):
        refused("lease_lost", lambda: settle_live(principal, grant, late, "failed"))
        assert [one.counted for one in access.rows(Loss, principal)] == [counted]


def test_a_used_up_budget_lets_nothing_begin_and_says_why(principal: Principal) -> None:
    name = create_live(principal, {"approve": "none", "budget": BUDGET})
    (grant,) = acquire_live(principal)
    # One total failure costs 200 x (5 + 5 + 2) = 2,400 requests.
    settle_live(principal, grant, result([0.1] * 8, "harm", cost={"slow": 172_800 - 2_399}))
    assert acquire_live(principal) == []
    waits = trial(principal, name, 2)
    assert waits.state == "REQUESTED"
    data = data_of(waits.reason, waits.reason_data)
    assert data is not None
    assert data["code"] == "live_budget_used"
    values: Any = data["values"]
    assert (values["budget"], values["limit"], values["worst"]) == ("slow", 172_800, 2400)
    assert waiting.standing(principal, study(principal, name)).reason == waits.reason
    assert "budget 'slow' allows 172,800 slow in a day, 170,401 are used" in waits.reason


def test_a_rate_that_is_not_known_before_the_first_trial_is_read_by_it(principal: Principal) -> None:
    unknown = {"slow": {"metric": "slow", "of": "requests", "most": 0.01, "per": "hour"}}
    create_live(principal, {"approve": "none", "budget": unknown})
    (grant,) = acquire_live(principal)
    assert grant.live is not None
    [budget] = grant.live["budgets"]
    assert (budget["left"], budget["most"], budget["period"]) == (-1.0, 0.01, 3600.0)
    settle_live(principal, grant, result([0.0] * 8))
    (grant,) = acquire_live(principal)
    assert grant.live is not None
    assert grant.live["budgets"][0]["left"] == pytest.approx(0.01 * 200 * 3600)


def test_a_closed_window_lets_nothing_begin_and_says_when_it_opens(
    principal: Principal, at: Callable[[datetime], None]
) -> None:
    name = create_live(principal, {"approve": "none", "window": {"days": "mon", "hours": "09:00-17:00"}})
    at(datetime(2026, 11, 29, 12, tzinfo=UTC))
    assert acquire_live(principal) == []
    waits = trial(principal, name, 1)
    assert waits.reason == "This live trial waits: its window opens on Monday, 2026-11-30 at 09:00 (UTC)."
    data = data_of(waits.reason, waits.reason_data)
    assert data is not None
    assert data["code"] == "live_window_closed"
    at(datetime(2026, 11, 30, 16, 50, tzinfo=UTC))
    (grant,) = acquire_live(principal)
    assert grant.live is not None
    assert grant.live["seconds_left"] == 600
    # An agent that lost the answer is told the time that is left then.
    at(datetime(2026, 11, 30, 16, 55, tzinfo=UTC))
    assert [one.live and one.live["seconds_left"] for one in acquire_live(principal)] == [300]


def test_a_trial_that_restarts_the_system_waits_for_the_window_of_restarts(
    principal: Principal, at: Callable[[datetime], None]
) -> None:
    register_live(principal, restart=["size", "share", "restarting"])
    name = create_live(principal, {"approve": "none", "restart_window": {"days": "sun", "hours": "02:00-05:00"}})
    at(datetime(2026, 11, 30, 12, tzinfo=UTC))
    assert acquire_live(principal) == []
    assert "its restart_window opens on Sunday, 2026-12-06 at 02:00" in trial(principal, name, 1).reason


def test_broken_guards_teach_the_search_and_many_freeze_the_study(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.01] * 8))
    for count in (1, 2, 3):
        (grant,) = acquire_live(principal)
        break_guard(principal, grant)
        broken = trial(principal, name, grant.trial)
        assert broken.state == "INFEASIBLE"
        assert broken.live is not None
        outcome = LiveOutcome.from_json(broken.live)
        assert outcome.guard == "latency"
        assert outcome.limits == {"latency": pytest.approx(math.log(1.5))}
        assert study(principal, name).state == ("PAUSED" if count == 3 else "ACTIVE")
    frozen = study(principal, name)
    assert frozen.state_reason.startswith("3 of 4 live trials broke a guard (75.0 %), and 2 % may.")
    data = data_of(frozen.state_reason, frozen.state_reason_data)
    assert data is not None
    assert data["code"] == "live_frozen"
    assert acquire_live(principal) == []
    assert notices(principal) == [*["live.guard_broken"] * 3, "study.failed"]
    # A person looks at it and resumes it. The next broken guard freezes it again.
    update_state(principal, name, "ACTIVE")
    compute_all(principal)
    (grant,) = acquire_live(principal)
    break_guard(principal, grant)
    assert study(principal, name).state == "PAUSED"


def test_an_end_before_the_first_pair_gives_the_trial_back(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([], "window"))
    again = trial(principal, name, 1)
    assert (again.state, again.attempt) == ("REQUESTED", 1)
    (second,) = acquire_live(principal)
    assert (second.trial, second.lease != grant.lease) == (1, True)
    assert second.live is not None
    assert grant.live is not None
    assert second.live["seed"] != grant.live["seed"], "a coin is drawn for each lease"


def test_an_end_that_would_come_back_at_once_is_a_failure(principal: Principal) -> None:
    """The agent takes the budget for used up, and the service does not."""
    name = create_live(principal)
    for _ in range(3):
        (grant,) = acquire_live(principal)
        settle_live(principal, grant, result([], "budget"))
    ended = trial(principal, name, 1)
    assert (ended.state, ended.reason) == ("FAILED", "The trial has ended before its first pair of blocks.")


def test_an_agent_that_knows_no_pairs_gives_no_value(principal: Principal) -> None:
    name = create_live(principal)
    for _ in range(3):
        (grant,) = acquire_live(principal)
        runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome="completed", metrics={"latency": 5.0})
    ended = trial(principal, name, 1)
    assert (ended.state, ended.metrics) == ("FAILED", None)
    assert "older than live studies" in ended.reason


def test_a_revert_that_is_stuck_is_a_notice(principal: Principal) -> None:
    create_live(principal)
    (grant,) = acquire_live(principal)
    text = "the old settings could not be put back: exit code 1"
    runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome="failed", reason=text, reason_code="live_stuck")
    [notice] = access.rows(Notice, principal)
    assert (notice.kind, notice.reason) == ("live.stuck", f"Trial 1: {text}")
    # Readers in other languages get the sentence by its codes.
    assert data_of(notice.reason, notice.reason_data) == {
        "code": "live_of_trial",
        "values": {"trial": 1, "reason": text, "cause": {"code": "live_stuck", "values": {}}},
    }


def test_a_journal_that_was_changed_is_noted(principal: Principal) -> None:
    create_live(principal)
    (grant,) = acquire_live(principal)
    first, second, *rest = journal("plan", "apply", "revert")
    forged = (first, type(second)(second.time, second.kind, "another text", second.hash), *rest)
    settle_live(principal, grant, result([0.0] * 8, audit=forged))
    row = access.rows(LiveLease, principal).get()
    assert row.broken_link == 1
    ended = access.rows(AuditEntry, principal).filter(action="lease.settle").get()
    assert ended.detail["live"]["journal"]["broken_at"] == 1
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.0] * 8))
    assert access.rows(LiveLease, principal).exclude(lease=row.lease).get().broken_link is None


def test_deleting_a_study_deletes_what_is_live_of_it(principal: Principal) -> None:
    name = create_live(principal, {"approve": "none", "budget": BUDGET})
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.1] * 8, "harm", cost={"slow": 5.0}))
    delete_study(principal, name)
    for model in (LiveStudy, LiveLease, Loss, Plan, Trial):
        assert access.rows(model, principal).count() == 0, model
