"""States of studies whose trials run on agents, against a real PostgreSQL."""

from __future__ import annotations

from service.fleet import heartbeats, runs
from service.planning.create import create_study, delete_study, update_state
from service.results import analysis
from service.tenancy.principal import Principal
from service.trials.ask import ask as ask_trials
from service.trials.tell import complete_trial
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.fleet import acquire, create, refused, settle, study


def test_a_study_runs_on_an_agent_from_its_first_trial_to_its_last(principal: Principal, agent: str) -> None:
    name = create(principal, {"max_trials": 5}, parallelism=2)
    assert study(principal, name).requested_count == 3
    done: list[int] = []
    while True:
        grants = acquire(principal, 4)
        if not grants:
            break
        assert len(grants) <= 2
        for grant in grants:
            assert (grant.study, grant.component, grant.application) == (name, "compiler", "small")
            assert grant.metrics == ("seconds",)
            runs.report_started(principal, agent_id=agent, lease=grant.lease, node="n1")
            settle(principal, grant, seconds=float(grant.trial))
            done.append(grant.trial)
    assert sorted(done) == [1, 2, 3, 4, 5]
    after = study(principal, name)
    assert (after.state, after.finished_count, after.trial_count) == ("COMPLETED", 5, 5)
    assert [one.numbers for one in analysis.analyse(principal, after).best] == [[1]]


def test_a_paused_study_grants_nothing_and_an_aborted_one_cancels(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2)
    (grant,) = acquire(principal)
    update_state(principal, name, "PAUSED")
    assert acquire(principal, held=[grant]) == []
    settle(principal, grant)
    update_state(principal, name, "ACTIVE")
    (second,) = acquire(principal)
    update_state(principal, name, "ABORTED", reason="enough")
    assert heartbeats.renew(principal, agent_id=agent, leases=[second.lease]).cancel == [(second.lease, "enough")]
    settle(principal, second, "cancelled")
    after = study(principal, name)
    assert (after.open_count, after.state) == (0, "ABORTED")
    assert acquire(principal) == []


def test_a_study_on_agents_hands_out_nothing_else(principal: Principal, agent: str) -> None:
    name = create(principal)
    acquire(principal)
    refused("study_runs_on_agents", lambda: ask_trials(principal, name))
    refused("trial_runs_on_agent", lambda: complete_trial(principal, name, 1, metrics={"seconds": 1.0}))
    refused("trial_not_active", lambda: complete_trial(principal, name, 2, metrics={"seconds": 1.0}))
    refused("study_not_found", lambda: ask_trials(principal, "none"))


def test_a_deleted_study_is_lost_to_its_agent(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    delete_study(principal, name)
    assert heartbeats.renew(principal, agent_id=agent, leases=[grant.lease]).lost == [grant.lease]
    refused("lease_lost", lambda: settle(principal, grant))


def test_an_exhausted_space_completes_its_study(principal: Principal, agent: str) -> None:
    spec = make_spec(algorithm={"name": "grid"}, execution=make_execution())
    spec["space"]["parameters"] = [{"name": "n", "type": "int", "min": 1, "max": 3}]
    name = create_study(principal, study_name(), spec).name
    for _ in range(3):
        (grant,) = acquire(principal)
        settle(principal, grant)
    after = study(principal, name)
    assert (after.state, after.finished_count, after.exhausted) == ("COMPLETED", 3, True)
    assert after.state_reason
