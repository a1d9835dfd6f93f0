"""Configurations that fail again and again, against a real PostgreSQL: theirs or the machine's fault?"""

from __future__ import annotations

from typing import Any

import pytest

from service.core.errors import TrimtabError
from service.core.reasons import data_of
from service.core.space import Configuration
from service.fleet import runs
from service.fleet.grants import Grant
from service.fleet.models import Lease
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from tests.factories.fleet import AGENT, acquire, create, register, settle, study, trial

KILLED: dict[str, Any] = {
    "reason": "command: was ended by SIGKILL",
    "reason_code": "killed",
    "reason_values": {"step": "command"},
}


def fail(principal: Principal, agent_id: str = AGENT, **more: Any) -> Grant:
    """Let the next trial fail on an agent."""
    (grant,) = acquire(principal, agent_id=agent_id)
    runs.settle(principal, agent_id=agent_id, lease=grant.lease, outcome="failed", **{**KILLED, **more})
    return grant


def complete(principal: Principal, agent_id: str = AGENT, node: str = "") -> Grant:
    (grant,) = acquire(principal, agent_id=agent_id)
    runs.settle(
        principal, agent_id=agent_id, lease=grant.lease, outcome="completed", metrics={"seconds": 1.0}, node=node
    )
    return grant


def test_a_configuration_that_has_failed_twice_where_others_work_cannot_work(principal: Principal, agent: str) -> None:
    name = create(principal)
    complete(principal)
    first = fail(principal)
    assert trial(principal, name, first.trial).state == "REQUESTED", "once may be the machine's fault"
    second = fail(principal)
    assert (second.trial, second.attempt) == (first.trial, 2)
    ended = trial(principal, name, first.trial)
    assert ended.state == "INFEASIBLE"
    assert ended.reason == "Failed 2 times, on machines where other configurations work: " + KILLED["reason"]
    data = data_of(ended.reason, ended.reason_data)
    assert data is not None
    assert data["code"] == "failed_again"
    assert data["values"]["cause"] == {"code": "killed", "values": {"step": "command"}}  # type: ignore[index,call-overload]
    assert study(principal, name).state == "ACTIVE"


def test_where_nothing_has_worked_yet_the_machine_is_at_fault(principal: Principal, agent: str) -> None:
    name = create(principal)
    grants = [fail(principal) for _ in range(3)]
    assert {grant.trial for grant in grants} == {1}
    assert trial(principal, name, 1).state == "FAILED"


def test_a_machine_that_has_broken_blames_one_configuration_at_most(principal: Principal, agent: str) -> None:
    """After the first, the latest result of the machine is no longer COMPLETED."""
    name = create(principal)
    complete(principal)
    for _ in range(5):
        fail(principal)
    assert [trial(principal, name, number).state for number in (2, 3)] == ["INFEASIBLE", "FAILED"]


def test_each_machine_must_work_for_others(principal: Principal, agent: str) -> None:
    name = create(principal)
    register(principal, "agent-2")
    complete(principal)
    fail(principal)
    fail(principal, "agent-2")
    assert trial(principal, name, 2).state == "REQUESTED", "nothing has worked on the second machine"
    fail(principal)
    assert trial(principal, name, 2).state == "FAILED"


def test_nodes_of_one_agent_are_machines_of_their_own(principal: Principal, agent: str) -> None:
    name = create(principal)
    complete(principal, node="a")
    fail(principal, node="b")
    fail(principal, node="b")
    assert trial(principal, name, 2).state == "REQUESTED"
    fail(principal, node="b")
    assert trial(principal, name, 2).state == "FAILED"


@pytest.mark.parametrize("code", ["", "unknown_code"])
def test_a_lost_node_says_nothing_about_the_configuration(principal: Principal, agent: str, code: str) -> None:
    """Preempted jobs and nodes that fail have no code that the trial's own processes have shown."""
    name = create(principal)
    complete(principal)
    for _ in range(3):
        fail(principal, reason="a node of the job failed", reason_code=code)
    assert trial(principal, name, 2).state == "FAILED"


def test_a_configuration_that_has_worked_fails_by_the_machines_fault(principal: Principal, agent: str) -> None:
    name = create(principal)
    first = complete(principal)
    complete(principal)
    # The next trial repeats the first configuration.
    known = trial(principal, name, first.trial)
    (grant,) = acquire(principal)
    _repeat(principal, name, grant.trial, known.params, known.key)
    settle(principal, grant, "failed", **KILLED)
    complete_other = trial(principal, name, grant.trial)
    assert complete_other.state == "REQUESTED"
    for _ in range(2):
        fail(principal)
    assert trial(principal, name, grant.trial).state == "FAILED"


def test_two_trials_of_one_configuration_count_together(principal: Principal, agent: str) -> None:
    name = create(principal)
    complete(principal)
    first = fail(principal)
    for _ in range(2):
        fail(principal, reason="preempted", reason_code="")
    known = trial(principal, name, first.trial)
    assert known.state == "FAILED"
    (second,) = acquire(principal)
    _repeat(principal, name, second.trial, known.params, known.key)
    settle(principal, second, "failed", **KILLED)
    assert trial(principal, name, second.trial).state == "INFEASIBLE"


def test_a_settlement_of_an_earlier_version_is_recognised(principal: Principal, agent: str) -> None:
    """It has no code. The agent sends it again after an upgrade of the service."""
    create(principal)
    grant = fail(principal)
    (lease,) = access.rows(Lease, principal).filter(id=grant.lease)
    assert lease.settlement is not None
    lease.settlement.pop("code")
    access.save(principal, lease, "settlement")
    settle(principal, grant, "failed", **KILLED)
    with pytest.raises(TrimtabError, match="was settled as failed"):
        settle(principal, grant, "failed", **{**KILLED, "reason": "another"})


def _repeat(principal: Principal, name: str, number: int, params: Configuration, key: str) -> None:
    access.rows(Trial, principal).filter(study_id=study(principal, name).pk, number=number).update(
        params=params, key=key
    )
