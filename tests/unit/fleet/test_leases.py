"""Agents and leases against a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from service.core.errors import InvalidInput, NotFound, TrimtabError
from service.fleet import agents, grants, heartbeats, leases, logs, runs, selectors, tasks, waiting
from service.fleet.grants import Grant
from service.fleet.models import Agent, Lease
from service.planning.create import create_study, delete_study, update_state
from service.results import analysis
from service.studies import actions
from service.studies import selectors as study_selectors
from service.studies.models import Study, Trial, TrialLog
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import ending, enqueue, tuners
from service.trials.ask import ask as ask_trials
from service.trials.tell import MOST_ATTEMPTS, complete_trial, stop_trial
from tests.factories.domain import PATIENCE, make_component, make_execution, make_principal, make_spec, study_name

AGENT = "agent-1"


def register(
    principal: Principal, agent_id: str = AGENT, slots: int = 4, session_id: str = "", **component: Any
) -> None:
    agents.register(
        principal,
        agent_id=agent_id,
        name=agent_id,
        version="1",
        slots=slots,
        labels={},
        components=[make_component(**component)],
        session_id=session_id or uuid4().hex,
    )


@pytest.fixture
def agent(principal: Principal) -> str:
    register(principal)
    return AGENT


def create(principal: Principal, budget: dict[str, Any] | None = None, **execution: Any) -> str:
    spec = make_spec(execution=make_execution(**execution), budget=budget or {})
    return create_study(principal, study_name(), spec).name


def acquire(
    principal: Principal, count: int = 1, agent_id: str = AGENT, held: list[Grant] | None = None
) -> list[Grant]:
    return grants.acquire(principal, agent_id=agent_id, count=count, held=[one.lease for one in held or []])


def settle(principal: Principal, grant: Grant, outcome: Any = "completed", seconds: float = 1.0, **more: Any) -> None:
    metrics = {"seconds": seconds} if outcome == "completed" else {}
    runs.settle(principal, agent_id=AGENT, lease=grant.lease, outcome=outcome, metrics=metrics, **more)


def trial(principal: Principal, study: str, number: int) -> Trial:
    return study_selectors.get_trial(principal, study, number).trial


def study(principal: Principal, name: str) -> Study:
    return study_selectors.get_study(principal, name)


def refused(code: str, call: Callable[[], object]) -> None:
    with pytest.raises(TrimtabError) as caught:
        call()
    assert caught.value.code == code, caught.value


def expire(principal: Principal) -> None:
    access.rows(Lease, principal).filter(state="HELD").update(expires_at=Now() - timedelta(seconds=1))
    leases.expire(leases.overdue())


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


def test_agents_take_what_a_user_has_enqueued(principal: Principal, agent: str) -> None:
    name = create(principal, {"max_trials": 4}, parallelism=1)
    enqueue.enqueue_trials(principal, name, params={"x": 0.5, "n": 2}, count=2)
    origins = []
    while grants := acquire(principal, 1):
        origins.append(trial(principal, name, grants[0].trial).origin)
        settle(principal, grants[0])
    assert sorted(origins) == ["enqueued", "enqueued", "suggested", "suggested"]
    assert origins[3] == "enqueued"
    assert study(principal, name).state == "COMPLETED"


def test_no_more_run_at_once_than_the_study_allows(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2)
    grants = acquire(principal, 4)
    assert [grant.trial for grant in grants] == [1, 2]
    assert acquire(principal, 2, held=grants) == []
    settle(principal, grants[0])
    assert [grant.trial for grant in acquire(principal, 4, held=grants[1:])] == [3]
    assert study(principal, name).open_count == 3


def test_no_more_run_on_an_agent_than_it_has_slots(principal: Principal) -> None:
    register(principal, slots=2)
    create(principal, parallelism=9)
    grants = acquire(principal, 5)
    assert len(grants) == 2
    assert acquire(principal, 5, held=grants) == []


@pytest.mark.parametrize(
    ("execution", "granted"),
    [
        ({}, 1),
        ({"digest": "d1"}, 1),
        ({"digest": "d2"}, 0),
        ({"component": "other"}, 0),
        ({"application": "large"}, 0),
        ({"application": ""}, 1),
    ],
)
def test_trials_go_to_agents_that_offer_what_they_need(
    principal: Principal, agent: str, execution: dict[str, Any], granted: int
) -> None:
    create(principal, **execution)
    assert len(acquire(principal)) == granted


@pytest.mark.parametrize(
    ("execution", "reason"),
    [
        ({"component": "other"}, "Waits for an agent that offers component 'other'; those online offer compiler."),
        (
            {"digest": "d2"},
            "Waits for an agent that offers component 'compiler' with digest d2; those online have d1 (agent-1).",
        ),
        (
            {"application": "large"},
            "Waits for an agent whose component 'compiler' has application 'large'; those online have small.",
        ),
    ],
)
def test_a_trial_says_why_no_agent_takes_it(
    principal: Principal, agent: str, execution: dict[str, Any], reason: str
) -> None:
    name = create(principal, **execution)
    waiting.tell()
    before = study(principal, name).revision
    assert trial(principal, name, 1).reason.startswith(reason)
    waiting.tell()
    assert study(principal, name).revision == before, "it is said once"
    register(principal, "agent-2", **component_for(execution))
    waiting.tell()
    assert trial(principal, name, 1).reason == ""
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(minutes=1))
    waiting.tell()
    assert trial(principal, name, 1).reason == "Waits for an agent: none is online."
    (grant,) = acquire(principal, agent_id="agent-2")
    assert trial(principal, name, 1).reason == ""
    runs.settle(principal, agent_id="agent-2", lease=grant.lease, outcome="failed", reason="disk full")
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(minutes=1))
    waiting.tell()
    assert trial(principal, name, 1).reason == "disk full", "what went wrong is worth more"


def component_for(execution: dict[str, Any]) -> dict[str, Any]:
    """What an agent has to have for that."""
    found = {key: value for key, value in execution.items() if key == "digest"}
    if "component" in execution:
        found["name"] = execution["component"]
    if "application" in execution:
        found["applications"] = [execution["application"]]
    return found


def test_studies_take_turns(principal: Principal, agent: str) -> None:
    names = [create(principal, parallelism=3) for _ in range(3)]
    first = acquire(principal, 3)
    assert sorted(grant.study for grant in first) == sorted(names)
    (fourth,) = acquire(principal, 1, held=first)
    assert fourth.study == first[0].study


def test_an_agent_works_in_one_place_at_a_time(principal: Principal) -> None:
    register(principal, session_id="here:1")
    before = agents.known(principal, AGENT)
    refused("agent_online_elsewhere", lambda: register(principal, session_id="there:2", slots=9))
    after = agents.known(principal, AGENT)
    assert (after.session_id, after.slots, after.last_seen_at) == ("here:1", before.slots, before.last_seen_at)
    register(principal, session_id="here:3")  # it was started again
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(minutes=1))
    register(principal, session_id="there:2")  # and has moved
    refused("agent_online_elsewhere", lambda: register(principal, session_id="here:4"))


def test_of_two_agents_that_come_at_one_moment_one_is_refused(principal: Principal) -> None:
    register(principal, session_id="gone:0")
    access.rows(Agent, principal).update(last_seen_at=Now() - timedelta(minutes=1))

    def come(number: int) -> str:
        try:
            register(principal, session_id=f"place{number}:1")
        except TrimtabError as error:
            return error.code
        finally:
            connection.close()
        return ""

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(pool.map(come, range(4)))
    assert answers == ["", *["agent_online_elsewhere"] * 3]


def test_who_is_unknown_registers_first(principal: Principal) -> None:
    create(principal)
    with pytest.raises(NotFound) as caught:
        acquire(principal)
    assert caught.value.code == "unknown_agent"
    register(principal)
    register(principal)
    assert len(acquire(principal)) == 1
    (listed,) = selectors.list_agents(principal)
    assert (listed.agent_id, listed.busy, listed.online) == (AGENT, 1, True)
    refused("agent_not_found", lambda: selectors.get_agent(principal, "none"))
    with pytest.raises(InvalidInput):
        register(principal, slots=0)


def test_a_grant_whose_answer_was_lost_comes_again(principal: Principal, agent: str) -> None:
    create(principal, parallelism=2)
    lost = acquire(principal)
    again = acquire(principal)
    assert again == lost
    assert grants.acquire(principal, agent_id=agent, count=0) == lost
    (other,) = acquire(principal, 1, held=lost)
    assert other.trial == 2


def test_a_lost_grant_of_a_stopped_trial_does_not_come_again(principal: Principal, agent: str) -> None:
    name = create(principal)
    (lost,) = acquire(principal)
    stop_trial(principal, name, lost.trial)
    assert [grant.trial for grant in acquire(principal)] == [2]
    assert access.rows(Lease, principal).get(id=lost.lease).state == "SETTLED"


def test_a_heartbeat_keeps_leases_and_tells_what_to_cancel(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2)
    one, two = acquire(principal, 2)
    before = access.rows(Lease, principal).get(id=one.lease).expires_at
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[one.lease, two.lease])
    assert (renewed.cancel, renewed.lost) == ([], [])
    assert access.rows(Lease, principal).get(id=one.lease).expires_at > before
    stop_trial(principal, name, one.trial, reason="too slow")
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[one.lease, two.lease, str(uuid4()), "odd"])
    assert renewed.cancel == [(one.lease, "too slow")]
    assert len(renewed.lost) == 2
    assert runs.report_measurement(principal, agent_id=agent, lease=one.lease, step=1, metrics={"seconds": 1.0})
    settle(principal, one, "cancelled")
    assert trial(principal, name, one.trial).state == "PRUNED"


def test_the_nodes_of_a_configuration_go_with_its_next_trial(principal: Principal, agent: str) -> None:
    """Those of trials that run or have a result; not those of other configurations, nor of what failed there."""
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


def test_a_study_of_before_there_was_a_placement_goes_on_as_it_was(principal: Principal, agent: str) -> None:
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
        with access.work(principal):
            locked = actions.lock(principal, name)
            learner, _ = tuners.borrow(principal, locked)
            tuners.give_back(locked, learner)
            return [(one.number, one.state) for one in learner.tuner.finished], learner.hours

    before = learned()
    runs.report_started(principal, agent_id=agent, lease=grant.lease, node="n2", run=2)
    settle(principal, grant, "cancelled", node="n2")
    assert (trial(principal, name, 1).state, trial(principal, name, 1).node) == ("PRUNED", "n2")
    # What is learned of it later does not make it two.
    assert learned() == before
    assert before[0] == [(1, "PRUNED")]


def test_an_expired_trial_is_tried_again_and_fails_after_three_attempts(principal: Principal, agent: str) -> None:
    name = create(principal)
    for attempt in (1, 2, 3):
        (grant,) = acquire(principal)
        assert (grant.trial, grant.attempt) == (1, attempt)
        runs.report_measurement(principal, agent_id=agent, lease=grant.lease, step=1, metrics={"seconds": attempt})
        expire(principal)
    failed = study_selectors.get_trial(principal, name, 1)
    assert failed.trial.state == "FAILED"
    assert AGENT in failed.trial.reason
    assert [one.metrics for one in failed.measurements] == [{"seconds": 3.0}]
    assert study(principal, name).open_count == 2


def test_one_study_whose_end_raises_holds_up_no_other_tenants_lease(
    principal: Principal, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_principal()
    register(other)
    for one in (principal, other):
        create(one)
        acquire(one)
    # Its attempts are used up, so that its expiry ends it.
    access.rows(Trial, principal).filter(state="ACTIVE").update(attempt=MOST_ATTEMPTS)
    broken, after_result = principal.tenant_id, ending.after_result

    def end(caller: Principal, study: Study) -> None:
        if study.tenant_id == broken:
            raise RuntimeError("the stored state cannot be loaded")
        after_result(caller, study)

    monkeypatch.setattr(ending, "after_result", end)
    for seconds, one in enumerate((other, principal), start=1):
        access.rows(Lease, one).update(expires_at=Now() - timedelta(seconds=seconds))
    late = leases.overdue()
    assert [tenant_id for tenant_id, _, _ in late] == [principal.tenant_id, other.tenant_id]
    leases.expire(late)
    assert [access.rows(Lease, one).get().state for one in (principal, other)] == ["HELD", "EXPIRED"]
    # Once it is mended the next sweep takes it back as well.
    broken = 0
    leases.expire(leases.overdue())
    assert access.rows(Lease, principal).get().state == "EXPIRED"


def test_a_failure_is_tried_again_and_an_infeasible_configuration_is_not(principal: Principal, agent: str) -> None:
    name = create(principal)
    for attempt in (1, 2, 3):
        (grant,) = acquire(principal)
        assert (grant.trial, grant.attempt) == (1, attempt)
        settle(principal, grant, "failed", reason="disk full")
    assert (trial(principal, name, 1).state, trial(principal, name, 1).reason) == ("FAILED", "disk full")
    (grant,) = acquire(principal)
    settle(principal, grant, "infeasible", reason="does not compile")
    assert trial(principal, name, grant.trial).state == "INFEASIBLE"


def test_the_same_failure_ten_times_in_a_row_pauses_the_study(principal: Principal, agent: str) -> None:
    name = create(principal, {"max_trials": 40})

    def fail(count: int, reason: str) -> None:
        for number in range(count):
            (grant,) = acquire(principal)
            # paths of the trials' folders do not make failures different
            where = f"/state/leases/lease-{grant.lease}/work"
            settle(principal, grant, "infeasible", reason=f"{where}: {reason}\noutput {number}")

    fail(9, "ran into its time limit")
    (grant,) = acquire(principal)
    settle(principal, grant)
    fail(9, "exit code 1")
    assert study(principal, name).state == "ACTIVE"
    fail(1, "exit code 1")
    paused = study(principal, name)
    assert paused.state == "PAUSED"
    assert paused.state_reason.startswith(
        "10 trials in a row are INFEASIBLE for the same reason: /state/leases/lease-…/work: exit code 1"
    )
    assert acquire(principal) == []

    update_state(principal, name, "ACTIVE")
    fail(9, "exit code 1")
    assert study(principal, name).state == "ACTIVE", "who resumes it is given ten more"
    fail(1, "exit code 1")
    assert study(principal, name).state_reason.startswith("20 trials in a row")
    update_state(principal, name, "ACTIVE")
    (grant,) = acquire(principal)
    settle(principal, grant)
    assert study(principal, name).state == "ACTIVE"


def test_a_trial_that_was_given_back_loses_no_attempt(principal: Principal, agent: str) -> None:
    create(principal)
    for _ in range(5):
        (grant,) = acquire(principal)
        assert (grant.trial, grant.attempt) == (1, 1)
        settle(principal, grant, "released")


def test_one_settlement_counts(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    with pytest.raises(InvalidInput):
        runs.settle(principal, agent_id=agent, lease=grant.lease, outcome="completed", metrics={"other": 1})
    for _ in range(2):
        settle(principal, grant, seconds=2.0)
    refused("lease_already_settled", lambda: settle(principal, grant, seconds=3.0))
    refused("lease_already_settled", lambda: settle(principal, grant, "failed"))
    assert trial(principal, name, 1).metrics == {"seconds": 2.0}
    assert study(principal, name).finished_count == 1


def test_a_reason_with_output_that_is_no_text_is_kept(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    for _ in range(2):
        settle(principal, grant, "infeasible", reason="ended with exit code 1\nab\0c")
    assert (trial(principal, name, 1).state, trial(principal, name, 1).reason) == (
        "INFEASIBLE",
        "ended with exit code 1\nabc",
    )


def test_a_late_result_counts_while_nobody_else_has_the_trial(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    expire(principal)
    assert trial(principal, name, 1).state == "REQUESTED"
    refused("lease_lost", lambda: settle(principal, grant, "failed"))
    for _ in range(2):
        settle(principal, grant, seconds=2.0)
    assert (trial(principal, name, 1).state, trial(principal, name, 1).agent) == ("COMPLETED", AGENT)
    assert study(principal, name).finished_count == 1


def test_what_runs_goes_on_when_its_agent_is_heard_again(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2)
    grants = acquire(principal, 2)
    expire(principal)
    assert acquire(principal, 2, held=grants) == [], "a call that was held while the agent was silent"
    assert heartbeats.stops(principal, agent_id=agent, leases=[grant.lease for grant in grants]).lost == [], "another"
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[grant.lease for grant in grants])
    assert (renewed.cancel, renewed.lost) == ([], [])
    assert study(principal, name).active_count == 2
    for grant in grants:
        found = trial(principal, name, grant.trial)
        assert (found.state, found.attempt, found.agent) == ("ACTIVE", 1, AGENT)
        settle(principal, grant, "failed", reason="a report that only a lease that is held may give")
        assert trial(principal, name, grant.trial).attempt == 2


def test_what_another_has_meanwhile_is_lost(principal: Principal, agent: str) -> None:
    """And so is what would make more run than the study allows."""
    register(principal, "agent-2")
    name = create(principal, parallelism=2)
    first, second = acquire(principal, 2)
    expire(principal)
    (taken,) = acquire(principal, 1, agent_id="agent-2")
    assert taken.trial == first.trial
    renewed = heartbeats.renew(principal, agent_id=agent, leases=[first.lease, second.lease])
    assert renewed.lost == [first.lease]
    expire(principal)
    others = acquire(principal, 2, agent_id="agent-2")
    assert len(others) == 2
    assert heartbeats.renew(principal, agent_id=agent, leases=[second.lease]).lost == [second.lease]
    assert study(principal, name).active_count == 2
    refused("lease_lost", lambda: settle(principal, first))


def test_a_service_that_was_away_gives_agents_time_to_be_heard(
    principal: Principal, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = create(principal)
    acquire(principal)
    access.rows(Lease, principal).update(expires_at=Now() - timedelta(hours=1))
    clock = [1000.0]
    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(tasks, "_watch", tasks._Watch())

    def sweep_for(seconds: float) -> str:
        for _ in range(int(seconds / 2)):
            tasks.sweep()
            clock[0] += 2
        return str(trial(principal, name, 1).state)

    assert sweep_for(settings.TRIMTAB_LEASE_SECONDS) == "ACTIVE"
    clock[0] += 60  # the database was away
    assert sweep_for(settings.TRIMTAB_LEASE_SECONDS) == "ACTIVE"
    assert sweep_for(2) == "REQUESTED"


def test_a_late_result_is_refused_once_another_has_the_trial(principal: Principal, agent: str) -> None:
    name = create(principal)
    (late,) = acquire(principal)
    expire(principal)
    (current,) = acquire(principal)
    assert (current.trial, current.attempt) == (1, 2)
    refused("lease_lost", lambda: settle(principal, late))
    refused("lease_lost", lambda: runs.report_started(principal, agent_id=agent, lease=late.lease))
    settle(principal, current, seconds=4.0)
    refused("lease_lost", lambda: settle(principal, late))
    assert trial(principal, name, 1).metrics == {"seconds": 4.0}


def test_leases_belong_to_their_agent(principal: Principal, agent: str) -> None:
    create(principal)
    (grant,) = acquire(principal)
    register(principal, "agent-2")
    refused(
        "lease_lost",
        lambda: runs.settle(
            principal, agent_id="agent-2", lease=grant.lease, outcome="completed", metrics={"seconds": 1.0}
        ),
    )
    assert heartbeats.renew(principal, agent_id="agent-2", leases=[grant.lease]).lost == [grant.lease]


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


def test_a_study_may_be_deleted_while_a_log_is_appended(
    principal: Principal, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    written, deleted = Event(), Event()
    put = access.put

    def put_slowly(principal: Principal, row: TrialLog) -> None:
        put(principal, row)
        written.set()
        deleted.wait(PATIENCE)

    def append() -> None:
        try:
            logs.append_log(principal, agent_id=agent, lease=grant.lease, offset=0, data=b"out")
        finally:
            connection.close()

    monkeypatch.setattr(access, "put", put_slowly)
    with ThreadPoolExecutor(1) as thread:
        appended = thread.submit(append)
        assert written.wait(PATIENCE)
        delete_study(principal, name)
        deleted.set()
        refused("lease_lost", appended.result)


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


def test_a_log_is_appended_at_its_offset(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)

    def append(offset: int, data: bytes) -> int:
        return logs.append_log(principal, agent_id=agent, lease=grant.lease, offset=offset, data=data)

    assert append(0, b"hello ") == 6
    assert append(0, b"hello ") == 6
    assert append(3, b"lo world") == 11
    assert append(20, b"gap") == 11
    assert study_selectors.get_trial(principal, name, 1).log == "hello world"
    assert append(11, b"x" * 100_000) == 100_011
    assert len(study_selectors.get_trial(principal, name, 1).log) == logs.LOG_TAIL_BYTES
    # Its job was started anew within the same lease, and so is the log, wherever that is noticed.
    assert append(0, b"hello ") == 100_011
    assert append(100_000, b"other") == 0
    assert append(0, b"anew: ") == 6
    assert append(0, b"anew, ") == 6
    assert append(6, b"more") == 10
    assert study_selectors.get_trial(principal, name, 1).log == "anew, more"
    first = grant
    expire(principal)
    (grant,) = acquire(principal)
    assert append(0, b"again") == 5
    assert study_selectors.get_trial(principal, name, 1).log == "again"
    grant = first
    refused("lease_lost", lambda: append(100_011, b"late"))


def test_many_agents_run_each_trial_once(principal: Principal) -> None:
    names = [create(principal, {"max_trials": 20}, parallelism=4) for _ in range(2)]
    for index in range(6):
        register(principal, f"a{index}", slots=2)
    ran: list[tuple[str, int]] = []

    def work(index: int) -> None:
        try:
            idle = 0
            while idle < 20:
                granted = grants.acquire(principal, agent_id=f"a{index}", count=2)
                idle = 0 if granted else idle + 1
                for grant in granted:
                    ran.append((grant.study, grant.trial))
                    runs.settle(
                        principal,
                        agent_id=f"a{index}",
                        lease=grant.lease,
                        outcome="completed",
                        metrics={"seconds": 1.0},
                    )
                if not grants and all(study(principal, name).state == "COMPLETED" for name in names):
                    return
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert sorted(ran) == sorted((name, number) for name in names for number in range(1, 21))
    for name in names:
        assert (study(principal, name).state, study(principal, name).finished_count) == ("COMPLETED", 20)


def test_a_heartbeat_prunes_what_runs_for_too_long(principal: Principal, agent: str) -> None:
    spec = make_spec(execution=make_execution(parallelism=2), pruning=[{"name": "limit", "options": {"seconds": 5}}])
    name = create_study(principal, study_name(), spec).name
    quick, slow = acquire(principal, 2)
    both = [quick.lease, slow.lease]
    # Neither the time since the grant nor that before the trial began counts.
    access.rows(Trial, principal).update(started_at=Now() - timedelta(hours=1))
    assert heartbeats.renew(principal, agent_id=AGENT, leases=both).cancel == []
    told = {quick.lease: 4.0, slow.lease: 6.5}
    ((cancelled, reason),) = heartbeats.renew(principal, agent_id=AGENT, leases=both, elapsed=told).cancel
    assert (cancelled, "5 s" in reason) == (slow.lease, True)
    pruned = trial(principal, name, slow.trial)
    assert (pruned.state, pruned.seconds, pruned.metrics) == ("PRUNED", 6.5, {"seconds": 6.5})
    # The agent may not have heard it.
    assert [lease for lease, _ in heartbeats.renew(principal, agent_id=AGENT, leases=both).cancel] == [slow.lease]
    settle(principal, slow, "cancelled", reason=reason, elapsed_seconds=6.7)
    assert heartbeats.renew(principal, agent_id=AGENT, leases=[quick.lease]).cancel == []
    settle(principal, quick, elapsed_seconds=4.5)
    assert trial(principal, name, quick.trial).seconds == 4.5
    assert study(principal, name).finished_count == 2


def test_a_trial_that_is_tried_again_begins_its_time_anew(principal: Principal, agent: str) -> None:
    name = create(principal)
    (grant,) = acquire(principal)
    settle(principal, grant, "failed", reason="no disk", elapsed_seconds=9.0)
    again = trial(principal, name, grant.trial)
    assert (again.state, again.seconds) == ("REQUESTED", None)
