"""Plans of live trials: who must approve them, for how long that holds, and the red button."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.core.errors import TrimtabError
from service.core.reasons import data_of
from service.fleet import live, waiting
from service.fleet.heartbeats import renew
from service.live.models import Plan, PlanState
from service.live.status import LiveStatus
from service.notices.models import Notice
from service.planning.create import create_study, update_state
from service.studies.change import changing
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials.enqueue import enqueue_trials
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.domain import refused as refuse
from tests.factories.fleet import AGENT, study, trial
from tests.factories.live import (
    SPACE,
    acquire_live,
    compute_all,
    create_live,
    register_live,
    result,
    settle_live,
)


@pytest.fixture(autouse=True)
def agent(principal: Principal) -> None:
    register_live(principal)


def approve(principal: Principal, name: str, number: int, **more: Any) -> LiveStatus:
    return live.decide(principal, name, number, approve=True, **more)


def decline(principal: Principal, name: str, number: int, **more: Any) -> LiveStatus:
    found = live.decide(principal, name, number, approve=False, **more)
    compute_all(principal)
    return found


def plan(principal: Principal, name: str, number: int) -> Plan:
    return access.rows(Plan, principal).get(study__name=name, trial__number=number)


def test_nothing_begins_before_an_administrator_has_approved_it(principal: Principal) -> None:
    name = create_live(principal, {"approve": "each"})
    waiting.tell()
    assert acquire_live(principal) == []
    waits = trial(principal, name, 1)
    assert waits.reason == "This live trial waits until an administrator approves its plan."
    data = data_of(waits.reason, waits.reason_data)
    assert data is not None
    assert data["code"] == "live_approval_waiting"
    assert waiting.standing(principal, study(principal, name)).reason == waits.reason
    [notice] = access.rows(Notice, principal)
    assert (notice.kind, notice.study) == ("live.approval_waiting", name)
    assert notice.reason_data["code"] == "live_would_change"
    [shown] = live.status(principal, name).plans
    assert (shown.trial, shown.state, shown.people, shown.approvals) == (1, "PLANNED", 1, [])
    [(before, after)] = shown.changes.values()
    assert before != after
    assert shown.expected is not None
    assert shown.worst is not None
    assert shown.worst > shown.expected
    approve(principal, name, 1)
    assert trial(principal, name, 1).reason == ""
    (grant,) = acquire_live(principal)
    assert grant.trial == 1
    # The same decision again changes nothing.
    assert [one.state for one in approve(principal, name, 1).plans] == ["APPROVED"]
    entries = access.rows(AuditEntry, principal).filter(action="live.approve")
    assert [(one.actor, one.target) for one in entries] == [("tester", f"study/{name}/trial/1")]
    assert access.rows(Notice, principal).count() == 1


def test_a_declined_plan_makes_room_for_another_candidate_and_costs_no_budget(principal: Principal) -> None:
    name = create_live(principal, {"approve": "each"}, budget={"max_trials": 2})
    declined = trial(principal, name, 1)
    decline(principal, name, 1, reason="not during the sale")
    gone = trial(principal, name, 1)
    assert (gone.state, gone.reason) == ("FAILED", "Its plan was declined: not during the sale")
    other = trial(principal, name, 2)
    assert other.state == "REQUESTED"
    assert other.params != declined.params
    decline(principal, name, 1)
    refuse("plan_decided", lambda: approve(principal, name, 1))
    for number in (2, 3):
        approve(principal, name, number)
        (grant,) = acquire_live(principal)
        settle_live(principal, grant, result([0.0] * 8))
    assert study(principal, name).state == "COMPLETED", "two trials have run"


def test_two_people_approve(principal: Principal) -> None:
    name = create_live(principal, {"approve": {"first": 1, "people": 2}})
    approve(principal, name, 1)
    assert acquire_live(principal) == []
    assert "until a second administrator approves" in trial(principal, name, 1).reason
    refuse("second_person", lambda: approve(principal, name, 1))
    approve(replace(principal, actor="other"), name, 1)
    assert [one["actor"] for one in plan(principal, name, 1).approvals] == ["tester", "other"]
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([0.0] * 8))
    # Only the first one needs an approval.
    assert len(acquire_live(principal)) == 1


def test_an_approval_expires(principal: Principal) -> None:
    name = create_live(principal, {"approve": "each"})
    approve(principal, name, 1)
    access.rows(Plan, principal).update(expires_at=Now() - timedelta(seconds=1))
    assert acquire_live(principal) == []
    compute_all(principal)
    assert trial(principal, name, 1).reason == "Its plan has expired: It was valid for 24 hours."
    assert acquire_live(principal) == []
    assert plan(principal, name, 2).state == PlanState.PLANNED


def test_a_plan_expires_when_other_settings_come_into_force(principal: Principal) -> None:
    name = create_live(principal, {"approve": "each"})
    approve(principal, name, 1)
    (grant,) = acquire_live(principal)
    # A person puts another configuration behind it, and approves it while the first one runs.
    enqueue_trials(principal, name, params={"size": 9})
    approve(principal, name, 2)
    settle_live(principal, grant, result([-0.1] * 8, "keep", kept=True))
    assert acquire_live(principal) == []
    assert trial(principal, name, 2).reason == "Its plan has expired: Other settings have come into force."


@pytest.mark.parametrize(
    ("rule", "restart", "needed"),
    [
        ("none", ["size", "share", "restarting"], False),
        ("restart", [], False),
        ("restart", ["size", "share", "restarting"], True),
        ({"first": 1}, [], True),
        ("each", [], True),
    ],
)
def test_which_trials_are_approved(principal: Principal, rule: Any, restart: list[str], needed: bool) -> None:
    register_live(principal, restart=restart)
    create_live(principal, {"approve": rule})
    assert bool(acquire_live(principal)) != needed


def test_a_configuration_of_a_person_is_always_approved(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    enqueue_trials(principal, name, params={"size": 64})
    settle_live(principal, grant, result([0.0] * 8))
    assert acquire_live(principal) == []
    assert "approves its plan" in trial(principal, name, 2).reason
    approve(principal, name, 2)
    (grant,) = acquire_live(principal)
    assert grant.params["size"] == 64


def test_only_a_live_study_has_plans(principal: Principal) -> None:
    spec = make_spec(execution=make_execution())
    name = create_study(principal, study_name(), spec).name
    refuse("not_live", lambda: approve(principal, name, 1))
    refuse("not_live", lambda: live.status(principal, name))
    refuse("not_live", lambda: live.stop(principal, name))
    other = create_live(principal, {"approve": "each"})
    refuse("trial_not_found", lambda: approve(principal, other, 9))
    update_state(principal, other, "PAUSED")
    refuse("study_not_active", lambda: approve(principal, other, 1))


def test_the_red_button_ends_what_runs_at_once(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    stopped = live.stop(principal, name, reason="the site is slow")
    assert (stopped.study.state, stopped.study.state_reason) == ("PAUSED", "the site is slow")
    renewal = renew(principal, agent_id=AGENT, leases=[grant.lease])
    assert renewal.cancel == [(grant.lease, "the site is slow")]
    # The agent reports what it has seen until then.
    settle_live(principal, grant, result([0.1], "stopped", cost={"slow": 3.0}), "cancelled")
    ended = trial(principal, name, 1)
    assert (ended.state, ended.live is not None and ended.live["pairs"]) == ("PRUNED", 1)
    assert live.stop(principal, name).study.state == "PAUSED"
    assert acquire_live(principal) == []
    assert list(access.rows(Notice, principal).values_list("kind", flat=True)) == ["live.reverted"]


def test_a_component_keeps_its_forbidden_parameters(principal: Principal) -> None:
    register_live(principal, forbidden=["share"])
    spec = make_spec(
        space=SPACE,
        objectives=[{"metric": "latency", "goal": "minimize"}],
        execution=make_execution(component="live", application=""),
        live={},
    )
    from service.fleet.offers import check_offer

    with pytest.raises(TrimtabError) as caught:
        create_study(principal, study_name(), spec, check_space=check_offer)
    assert (caught.value.code, caught.value.data["field"]) == ("forbidden_live", "space[1]")


def test_a_change_of_the_study_has_no_plan_for_a_running_trial(principal: Principal) -> None:
    name = create_live(principal)
    acquire_live(principal)
    with changing(principal, name, "trial.wait") as work:
        assert not work.study.requested_count
    [shown] = live.status(principal, name).plans
    assert (shown.trial_state, shown.reason) == ("ACTIVE", "")
