"""Instances of live systems: what agents report of them, and how kept settings are taken back."""

from __future__ import annotations

import pytest

from service.core.errors import InvalidInput, NotFound
from service.core.live_instances import Instance, Look, Reading
from service.fleet import live, live_instances
from service.fleet.grants import Grant
from service.fleet.live_instances import Wanted
from service.live.system import state_of
from service.notices.models import Notice
from service.planning.create import delete_study
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from tests.factories.domain import make_principal
from tests.factories.fleet import AGENT, create, expire, register, study
from tests.factories.live import INCUMBENT, acquire_live, create_live, register_live, result, settle_live

GUARD = Reading("latency", "latency", above=True, limit=15.0, value=9.0, seconds=5.0, beyond=0.0)


@pytest.fixture(autouse=True)
def agent(principal: Principal) -> None:
    register_live(principal)


def seen(state: str, grant: Grant | None = None, name: str = "one", **more: object) -> Instance:
    return Instance("live", name, state, "" if grant is None else grant.lease, **more)  # type: ignore[arg-type]


def report(principal: Principal, *instances: Instance, agent_id: str = AGENT) -> list[Wanted]:
    return live_instances.report(principal, agent_id=agent_id, instances=instances)


def keep(principal: Principal, name: str) -> Grant:
    """Run a trial whose candidate is kept."""
    (grant,) = acquire_live(principal)
    settle_live(principal, grant, result([-0.2] * 8, "keep", kept=True))
    report(principal, seen("kept", grant, settings=dict(grant.params)))
    assert state_of(principal, study(principal, name)).kept[0]["in_force"]
    return grant


def test_people_see_what_an_agent_has_reported_of_its_own_trials(principal: Principal) -> None:
    name = create_live(principal)
    (grant,) = acquire_live(principal)
    look = Look(at=1.0, value=-0.1, effect=-0.1, low=None, high=0.2)
    now = seen("running", grant, phase="block", candidate=True, guards=(GUARD,), looks=(look,), pairs=1)
    assert report(principal, now, seen("idle", name="two")) == []
    (shown,) = live.status(principal, name).instances
    assert (shown.seen, shown.trial, shown.agent, shown.study, shown.revert_at) == (now, 1, AGENT, name, None)

    # A lease of another agent says nothing of its study.
    register(principal, "stranger", name="live", applications=["one"], metrics=[])
    report(principal, seen("running", grant, name="three"), agent_id="stranger")
    assert len(live.status(principal, name).instances) == 1
    # What is missing in a report is forgotten.
    report(principal)
    assert live.status(principal, name).instances == []


def test_a_report_is_checked(principal: Principal) -> None:
    with pytest.raises(InvalidInput, match="idle, running"):
        report(principal, seen("well"))
    with pytest.raises(InvalidInput, match="at most 100"):
        report(principal, *(seen("idle", name=str(number)) for number in range(101)))
    with pytest.raises(NotFound, match="not registered"):
        report(make_principal(), seen("idle"))


def test_the_red_button_takes_kept_settings_back(principal: Principal) -> None:
    name = create_live(principal)
    grant = keep(principal, name)
    stopped = live.stop(principal, name, reason="too slow")
    assert stopped.study.state == "PAUSED"
    assert stopped.instances[0].revert_at is not None

    # The agent is told until it reports that the old settings are in force.
    for _ in range(2):
        (wanted,) = report(principal, seen("kept", grant))
        assert (wanted.component, wanted.instance) == ("live", "one")
        assert "has stopped the study: too slow" in wanted.reason
    assert report(principal, seen("idle", reason="somebody has asked")) == []
    found = live.status(principal, name)
    assert found.instances[0].revert_at is None
    assert not found.kept[0]["in_force"]
    assert found.in_force == INCUMBENT
    notice = access.rows(Notice, principal).get(kind="live.reverted")
    assert notice.reason == "Kept settings were taken back: somebody has asked"
    assert access.rows(AuditEntry, principal).filter(action="live.taken_back").count() == 1
    report(principal, seen("idle", reason="somebody has asked"))
    assert access.rows(Notice, principal).filter(kind="live.reverted").count() == 1


def test_kept_settings_may_stay_when_a_study_is_stopped(principal: Principal) -> None:
    name = create_live(principal)
    grant = keep(principal, name)
    assert live.stop(principal, name, leave_kept=True).instances[0].revert_at is None
    assert report(principal, seen("kept", grant)) == []
    assert live.status(principal, name).kept[0]["in_force"]


def test_settings_are_kept_until_the_last_instance_has_the_old_ones(principal: Principal) -> None:
    name = create_live(principal)
    grant = keep(principal, name)
    report(principal, seen("idle"), seen("kept", grant, name="two"))
    assert live.status(principal, name).kept[0]["in_force"]
    report(principal, seen("idle"), seen("stuck", grant, name="two", reason="revert.sh has failed"))
    assert live.status(principal, name).kept[0]["in_force"]
    assert access.rows(Notice, principal).get(kind="live.stuck").reason == "two: revert.sh has failed"
    report(principal, seen("idle"), seen("stopped", name="two"))
    assert not live.status(principal, name).kept[0]["in_force"]


def test_an_instance_outlives_its_study(principal: Principal) -> None:
    name = create_live(principal)
    grant = keep(principal, name)
    live.stop(principal, name)
    delete_study(principal, name)
    (wanted,) = report(principal, seen("kept", grant))
    assert wanted.instance == "one"


def test_a_silent_agent_costs_a_total_failure_until_it_reports(principal: Principal) -> None:
    budget = {"slow": {"metric": "slow", "of": "requests", "most": 0.01, "per": "day", "rate": 200}}
    name = create_live(principal, {"approve": "none", "budget": budget})
    (grant,) = acquire_live(principal)
    expire(principal)
    (found,) = live.status(principal, name).budgets
    assert found.spent == found.worst > 0
    settle_live(principal, grant, result([-0.1] * 3, cost={"slow": 7.0}))
    assert live.status(principal, name).budgets[0].spent == pytest.approx(7.0)


def test_the_board_has_live_studies_alone(principal: Principal) -> None:
    first = create_live(principal, {"approve": "each"})
    create(principal)
    assert [one.name for one in live.board(principal).studies] == [first]
    acquire_live(principal)
    second = create_live(principal, {"window": {"days": "mon-sun", "hours": "00:00-24:00"}})
    board = live.board(principal, second)
    assert [(one.name, one.waiting) for one in board.studies] == [(second, 0), (first, 1)]
    assert board.shown is not None
    assert board.shown.details is not None
    assert [(one.name, one.opens_at) for one in board.shown.details.windows] == [("window", None)]
    first_shown = live.board(principal).shown
    assert first_shown is not None
    assert first_shown.study.name == second
    other = live.board(make_principal())
    assert (other.studies, other.shown) == ([], None)


def test_the_latest_outcomes_are_shown(principal: Principal) -> None:
    name = create_live(principal)
    keep(principal, name)
    details = live.status(principal, name).details
    assert details is not None
    (one,) = details.outcomes
    assert (one.trial, one.decision, one.kept, one.pairs) == (1, "keep", True, 8)
    assert one.effect == pytest.approx(-0.2)
    assert all(before != after for before, after in one.changes.values())
