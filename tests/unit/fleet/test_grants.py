"""Grants of leases, against a real PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now

from service.core.reasons import Reason, data_of
from service.fleet import grants, runs, waiting
from service.fleet.models import Agent, Lease
from service.studies.models import Study, Trial
from service.studies.selectors import list_studies
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import enqueue
from service.trials.tell import stop_trial
from tests.factories.fleet import acquire, create, register, settle, study, trial


def test_agents_take_trials_that_a_user_has_enqueued(principal: Principal, agent: str) -> None:
    name = create(principal, {"max_trials": 4}, parallelism=1)
    enqueue.enqueue_trials(principal, name, params={"x": 0.5, "n": 2}, count=2)
    origins = []
    while grants := acquire(principal, 1):
        origins.append(trial(principal, name, grants[0].trial).origin)
        settle(principal, grants[0])
    assert sorted(origins) == ["enqueued", "enqueued", "suggested", "suggested"]
    assert origins[3] == "enqueued"
    assert study(principal, name).state == "COMPLETED"


def test_the_parallelism_of_the_study_limits_grants(principal: Principal, agent: str) -> None:
    name = create(principal, parallelism=2)
    grants = acquire(principal, 4)
    assert [grant.trial for grant in grants] == [1, 2]
    assert acquire(principal, 2, held=grants) == []
    settle(principal, grants[0])
    assert [grant.trial for grant in acquire(principal, 4, held=grants[1:])] == [3]
    assert study(principal, name).open_count == 3


def test_the_slots_of_an_agent_limit_grants(principal: Principal) -> None:
    register(principal, slots=2)
    create(principal, parallelism=9)
    grants = acquire(principal, 5)
    assert len(grants) == 2
    assert acquire(principal, 5, held=grants) == []


def test_a_study_keeps_what_the_component_injects_into_its_runs(principal: Principal) -> None:
    everywhere = {"text": "heat", "application": "", "parameter": "", "values": []}
    here = {"text": "x" * 300, "application": "small", "parameter": "n", "values": [3]}
    elsewhere = {**everywhere, "text": "cold", "application": "large"}
    register(principal, applications=["small", "large"], injected=[everywhere, here, elsewhere])
    named, first = create(principal, parallelism=2), create(principal, parallelism=1, application="")
    acquire(principal, 4)
    for name in (named, first):
        injected = study(principal, name).injected
        assert injected is not None
        assert injected[0] == {"text": "heat", "parameter": "", "values": []}
        assert (len(injected), len(injected[1]["text"]), injected[1]["values"]) == (2, 200, [3])
    # Another version of the component injects nothing, and the study has runs of both.
    register(principal, "agent-2", slots=1, injected=[])
    acquire(principal, 1, agent_id="agent-2")
    assert len(study(principal, named).injected or []) == 2


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
def test_trials_go_only_to_agents_that_offer_their_component(
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
    failed = trial(principal, name, 1)
    assert (failed.reason, failed.reason_data) == ("disk full", None), "what went wrong is worth more"


def test_a_trial_says_which_agent_is_busy(principal: Principal, agent: str) -> None:
    register(principal, slots=1)
    first, second = create(principal), create(principal)
    [grant] = acquire(principal)
    waits = second if grant.study == first else first
    waiting.tell()
    assert trial(principal, waits, 1).reason == "", "a short wait is normal"
    access.rows(Trial, principal).update(created_at=Now() - timedelta(minutes=1))
    waiting.tell()
    reason = f"Waits for its turn: agent-1 is busy with {grant.study}."
    assert trial(principal, waits, 1).reason == reason
    kept = trial(principal, waits, 1)
    agents = [{"agent": "agent-1", "studies": grant.study, "more": 0}]
    busy = {"code": "agents_busy", "values": {"agents": agents, "more": 0}}
    assert data_of(kept.reason, kept.reason_data) == busy
    said = waiting.standing(principal, study(principal, waits)).reason
    assert isinstance(said, Reason)
    assert said.data == {
        "code": "joined",
        "values": {"parts": [busy, {"code": "place_in_queue", "values": {"place": 1}}]},
    }
    third, other = create(principal), create(principal, component="other")
    assert waiting.standing(principal, study(principal, waits)) == waiting.Standing(
        f"{reason} It is next in the queue.", 1
    )
    assert waiting.standing(principal, study(principal, third)).place == 2, "studies of other components do not count"
    assert waiting.standing(principal, study(principal, grant.study)) == waiting.Standing()
    assert waiting.standing(principal, study(principal, other)).place is None
    waiting.tell()
    attention = list_studies(principal, attention=True).items
    assert [one.name for one in attention] == [other], "a study in the queue needs nobody"
    access.rows(Study, principal).update(updated_at=Now() - timedelta(minutes=10))
    assert [one.name for one in list_studies(principal, attention=True, sort="created").items] == [third, other]
    register(principal, "agent-2", slots=1)
    waiting.tell()
    assert trial(principal, waits, 1).reason == "", "another agent is free"


def component_for(execution: dict[str, Any]) -> dict[str, Any]:
    """Return the component that an agent must offer for this execution."""
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
