"""Nodes on which trials run, against a real PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

import pytest

from service.core.errors import InvalidInput
from service.fleet import runs
from service.planning.create import create_study
from service.studies.change import changing
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tuners
from service.trials.tell import stop_trial
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.fleet import acquire, create, register, settle, trial


def test_the_nodes_of_a_configuration_go_with_its_next_trial(principal: Principal, agent: str) -> None:
    """They are the nodes of trials that run or have a result, without failed trials and other configurations."""
    register(principal, slots=9)
    name = create(principal, parallelism=9)
    access.rows(Trial, principal).filter(study__name=name, number__lte=6).update(key="same")
    ran = acquire(principal, 7)
    for grant in ran:
        runs.report_started(principal, agent_id=agent, lease=grant.lease, node=f"n{grant.trial}")
    settle(principal, ran[0], node="n8")
    settle(principal, ran[1], "infeasible")
    settle(principal, ran[2], "failed", reason="broken")
    stop_trial(principal, name, 4)
    settle(principal, ran[3], "cancelled")
    assert trial(principal, name, 3).node == ""
    held = ran[4:]
    (again,) = acquire(principal, 1, held=held)
    assert again.trial == 3
    assert sorted(again.measured_on) == ["n4", "n5", "n6", "n8"]
    # an answer that was lost says the same
    (repeated,) = acquire(principal, 1, held=held)
    assert sorted(repeated.measured_on) == ["n4", "n5", "n6", "n8"]
    (other,) = acquire(principal, 1, held=[*held, again])
    assert other.measured_on == []


def test_a_study_that_does_not_spread_its_trials(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2, placement={"spread": False, "exclusive": False})
    access.rows(Trial, principal).filter(study__name=name).update(key="same")
    (first,) = acquire(principal)
    runs.report_started(principal, agent_id=agent, lease=first.lease, node="n1")
    (second,) = acquire(principal, held=[first])
    assert (second.placement.exclusive, second.placement.spread, list(second.measured_on)) == (False, False, [])


@pytest.mark.parametrize(
    ("placement", "field"),
    [
        ({"exclusive": "yes"}, "execution.placement.exclusive"),
        ({"spread": 1}, "execution.placement.spread"),
        ({"alone": True}, "execution.placement.alone"),
        ([True], "execution.placement"),
    ],
)
def test_a_placement_that_is_none(principal: Principal, placement: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        create(principal, placement=placement)
    assert caught.value.data["field"] == field


def test_a_study_without_a_stored_placement_goes_on_unchanged(principal: Principal, agent: str) -> None:
    name = create(principal)
    row = access.rows(Study, principal).get(name=name)
    del row.spec["execution"]["placement"]
    row.created_at -= timedelta(days=9)  # it is not remembered
    access.save(principal, row, "spec", "created_at")
    (grant,) = acquire(principal)
    assert (grant.placement.exclusive, grant.placement.spread) == (False, False)


def test_a_pruned_trial_shows_the_node_where_it_ended(principal: Principal, agent: str) -> None:
    spec = make_spec(execution=make_execution(), algorithm={"name": "sa"})
    name = create_study(principal, study_name(), spec).name
    (grant,) = acquire(principal)
    runs.report_started(principal, agent_id=agent, lease=grant.lease, node="n1", run=1)
    stop_trial(principal, name, 1)

    def learned() -> tuple[list[tuple[int, str]], float]:
        with changing(principal, name, "test") as work, tuners.borrowed(work) as (learner, _):
            return [(one.number, one.state) for one in learner.tuner.finished], learner.hours

    before = learned()
    runs.report_started(principal, agent_id=agent, lease=grant.lease, node="n2", run=2)
    settle(principal, grant, "cancelled", node="n2")
    assert (trial(principal, name, 1).state, trial(principal, name, 1).node) == ("PRUNED", "n2")
    # What is learned of it later does not make it two.
    assert learned() == before
    assert before[0] == [(1, "PRUNED")]
