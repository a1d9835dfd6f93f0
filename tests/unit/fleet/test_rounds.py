"""Rounds of a final check on agents, against a real PostgreSQL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.api.v1.serializers.trials import TrialSerializer
from service.fleet import agents, runs
from service.fleet.grants import Grant
from service.fleet.models import Agent, Lease
from service.rpc.converters import trial_message
from service.studies import selectors
from service.studies.models import Study, Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from tests.factories.domain import make_execution
from tests.factories.fleet import acquire, expire, register, trial
from tests.unit.trials.policies.calls import create, get, with_default

pytestmark = pytest.mark.usefixtures("agent")
FIRST, SECOND, THIRD = "agent-1", "agent-2", "agent-3"


def in_check(
    principal: Principal, parallelism: int = 2, trials: int = 16, width: float = 1e-3, nodes: Sequence[str] = ("",)
) -> str:
    """Return a study whose final check has begun. Three agents are online, and the first has run on these nodes."""
    for name in (FIRST, SECOND, THIRD):
        register(principal, name)
    spec = with_default(
        budget={"max_trials": 1 + len(nodes)},
        final_check={"max_trials": trials, "effects": 0, "width": width},
        execution=make_execution(parallelism=parallelism),
    )
    name = create(principal, spec)
    for node in ("", *nodes):
        [grant] = acquire(principal)
        settle(principal, grant, seconds=10.0 if grant.params["x"] == 0.5 else 8.0, node=node)
    assert (get(principal, name).final_check or {})["best"] is not None
    return name


def settle(
    principal: Principal,
    grant: Grant,
    agent: str = FIRST,
    outcome: Any = "completed",
    seconds: float = 1.0,
    node: str = "",
) -> None:
    metrics = {"seconds": seconds} if outcome == "completed" else {}
    runs.settle(principal, agent_id=agent, lease=grant.lease, outcome=outcome, metrics=metrics, node=node)


def value(grant: Grant) -> float:
    return (10.0 if grant.params["x"] == 0.5 else 8.0) + 0.01 * (grant.trial % 7)


def checks(principal: Principal, name: str) -> list[Trial]:
    return list(access.rows(Trial, principal).filter(study__name=name, origin="check").order_by("number"))


def round_of(principal: Principal, name: str, grant: Grant) -> int | None:
    return trial(principal, name, grant.trial).round


def test_each_round_is_on_one_agent_and_few_agents_take_part(principal: Principal) -> None:
    name = in_check(principal)
    held: dict[str, list[Grant]] = {FIRST: [], SECOND: [], THIRD: []}
    taken: dict[str, list[int]] = defaultdict(list)
    while get(principal, name).state == "ACTIVE":
        for agent in (FIRST, SECOND, THIRD):
            granted = acquire(principal, 4, agent, held[agent])
            assert len(granted) + len(held[agent]) <= 1, "the trials of a round run one after the other"
            held[agent] += granted
        assert any(held.values()), "nothing waits for ever"
        # The second agent is slower.
        for agent in (FIRST, SECOND) if len(taken[FIRST]) % 3 else (FIRST,):
            if held[agent]:
                grant = held[agent].pop()
                taken[agent].append(grant.trial)
                settle(principal, grant, agent, seconds=value(grant))
    agents_of = defaultdict(set)
    for one in checks(principal, name):
        agents_of[one.round].add(one.agent)
    assert len(agents_of) == 8
    assert all(len(found) == 1 for found in agents_of.values())
    assert set.union(*agents_of.values()) == {FIRST, SECOND}, "each of two has four rounds"
    verdict = get(principal, name).verdict
    assert verdict is not None
    assert verdict["rounds"] == 8
    assert verdict["low"] > 0.15


def test_a_check_with_few_rounds_is_on_one_agent(principal: Principal) -> None:
    in_check(principal, parallelism=4, trials=8)
    [first] = acquire(principal, 4)
    assert acquire(principal, 4, SECOND) == []
    settle(principal, first)
    assert acquire(principal, 4, SECOND) == []
    assert len(acquire(principal, 4)) == 1


@pytest.mark.parametrize("gone", ["drained", "silent", "changed"])
def test_a_round_whose_agent_is_gone_is_void(principal: Principal, gone: str) -> None:
    name = in_check(principal, parallelism=1)
    [begun] = acquire(principal)
    settle(principal, begun)
    [waiting] = [one for one in checks(principal, name) if one.state == "REQUESTED"]
    assert acquire(principal, 1, SECOND) == [], "its agent is about to take it"
    if gone == "drained":
        agents.drain(principal, FIRST, draining=True)
    elif gone == "silent":
        access.rows(Agent, principal).filter(agent_id=FIRST).update(last_seen_at=Now() - timedelta(days=1))
    else:
        register(principal, FIRST, applications=["other"])
    [other] = acquire(principal, 1, SECOND)
    assert round_of(principal, name, other) == 2
    void = trial(principal, name, waiting.number)
    assert (void.state, void.reason) == ("FAILED", "The agent that has begun its round of the final check is gone.")
    settle(principal, other, SECOND)
    [next_one] = acquire(principal, 1, SECOND)
    assert round_of(principal, name, next_one) == 2
    shown = trial(principal, name, next_one.trial)
    study = selectors.get_study(principal, name)
    assert (trial_message(study, shown).round, TrialSerializer(shown).data["round"]) == (2, 2)
    searched = trial(principal, name, 1)
    assert not trial_message(study, searched).HasField("round")


def test_an_agent_that_is_busy_for_long_loses_its_round(principal: Principal) -> None:
    """It is online, but other studies have all of its slots."""
    name = in_check(principal, parallelism=1, trials=8)
    [begun] = acquire(principal)
    settle(principal, begun)
    assert acquire(principal, 1, SECOND) == []
    access.rows(Lease, principal).filter(id=begun.lease).update(settled_at=Now() - timedelta(hours=1))
    [other] = acquire(principal, 1, SECOND)
    assert round_of(principal, name, other) == 2


def test_an_agent_of_a_cluster_runs_rounds_on_several_nodes(principal: Principal) -> None:
    name = in_check(principal, parallelism=4, nodes=("n1", "n2", "n3"))
    [first] = acquire(principal, 4)
    assert acquire(principal, 4, held=[first]) == [], "the node of the first is not known yet"
    runs.report_started(principal, agent_id=FIRST, lease=first.lease, node="n1")
    [second] = acquire(principal, 4, held=[first])
    assert {round_of(principal, name, one) for one in (first, second)} == {1, 2}
    assert (first.same_node, second.same_node) == ("n1", "n2")
    runs.report_started(principal, agent_id=FIRST, lease=second.lease, node="n2")
    assert acquire(principal, 4, held=[first, second]) == [], "8 rounds are enough for two nodes"
    settle(principal, first, node="n1")
    [third] = acquire(principal, 4, held=[second])
    assert (round_of(principal, name, third), third.same_node) == (round_of(principal, name, first), "n1")
    settle(principal, third, node="n1")
    [fourth] = acquire(principal, 4, held=[second])
    assert (round_of(principal, name, fourth), fourth.same_node) == (3, "n1")
    assert acquire(principal, 4, SECOND) == []


def test_two_agents_on_one_node_do_not_run_rounds_at_once(principal: Principal) -> None:
    name = in_check(principal, parallelism=2, nodes=("n1",))
    access.rows(Trial, principal).filter(study__name=name, number=1).update(agent=SECOND, node="n1")
    [first] = acquire(principal)
    runs.report_started(principal, agent_id=FIRST, lease=first.lease, node="n1")
    assert acquire(principal, 1, SECOND) == []
    settle(principal, first, node="n1")
    assert acquire(principal, 1, SECOND) == []
    [last] = acquire(principal)
    settle(principal, last, node="n1")
    [other] = acquire(principal, 1, SECOND)
    assert round_of(principal, name, other) == 2
    assert acquire(principal) == []


def test_the_agent_that_took_over_goes_on(principal: Principal) -> None:
    """The first one comes back, and one agent is enough for the check."""
    name = in_check(principal, parallelism=1, trials=8)
    [begun] = acquire(principal)
    settle(principal, begun)
    agents.drain(principal, FIRST, draining=True)
    for expected in (2, 2):
        [other] = acquire(principal, 1, SECOND)
        assert round_of(principal, name, other) == expected
        settle(principal, other, SECOND)
        agents.drain(principal, FIRST, draining=False)
    assert acquire(principal) == []
    [other] = acquire(principal, 1, SECOND)
    assert round_of(principal, name, other) == 3


def test_a_failed_run_is_repeated_once_on_its_agent(principal: Principal) -> None:
    name = in_check(principal, parallelism=1)
    [begun] = acquire(principal)
    settle(principal, begun, outcome="failed")
    assert acquire(principal, 1, SECOND) == []
    [again] = acquire(principal)
    assert again.trial == begun.trial
    settle(principal, again, outcome="failed")
    assert trial(principal, name, begun.trial).state == "FAILED"
    states = {one.round: one.state for one in checks(principal, name) if one.number != begun.trial}
    assert states == {1: "FAILED", 2: "REQUESTED"}, "the round is void, and another one begins"
    [other] = acquire(principal, 1, SECOND)
    assert round_of(principal, name, other) == 2


def test_an_agent_whose_lease_expires_keeps_its_round_until_another_one_asks(principal: Principal) -> None:
    name = in_check(principal, parallelism=1)
    [begun] = acquire(principal)
    access.rows(Agent, principal).filter(agent_id=FIRST).update(last_seen_at=Now() - timedelta(days=1))
    expire(principal)
    assert trial(principal, name, begun.trial).state == "REQUESTED"
    [other] = acquire(principal, 1, SECOND)
    assert round_of(principal, name, other) == 2
    assert trial(principal, name, begun.trial).state == "FAILED"


def test_a_round_that_was_given_back_without_a_run_is_anyones(principal: Principal) -> None:
    name = in_check(principal, parallelism=1)
    [begun] = acquire(principal)
    settle(principal, begun, outcome="released")
    [same] = acquire(principal, 1, SECOND)
    assert same.trial == begun.trial
    assert round_of(principal, name, same) == 1


def test_the_runs_of_a_round_share_a_node(principal: Principal) -> None:
    name = in_check(principal, parallelism=1)
    [first] = acquire(principal)
    assert (first.placement.spread, first.measured_on, first.same_node) == (False, (), "")
    runs.report_started(principal, agent_id=FIRST, lease=first.lease, node="n7")
    settle(principal, first, node="n7")
    [second] = acquire(principal)
    assert second.same_node == "n7"
    [repeated] = acquire(principal)
    assert (repeated.lease, repeated.same_node) == (second.lease, "n7"), "an answer that was lost says the same"
    settle(principal, second, node="n8")
    [third] = acquire(principal)
    assert round_of(principal, name, third) == 2
    assert third.same_node == "n8", "a later round prefers the node of the agent's last one"


def test_a_round_that_nobody_has_begun_is_withdrawn_once_enough_was_measured(principal: Principal) -> None:
    name = in_check(principal, parallelism=2, width=1.0)
    while get(principal, name).state == "ACTIVE":
        [grant] = acquire(principal)
        settle(principal, grant, seconds=value(grant))
    states = [(one.round, one.state) for one in checks(principal, name)]
    assert [state for number, state in states if number == 7] == ["FAILED", "FAILED"]
    assert [state for number, state in states if number != 7] == ["COMPLETED"] * 12
    verdict = get(principal, name).verdict
    assert verdict is not None
    assert verdict["rounds"] == 6
    study: Study = get(principal, name)
    assert (study.requested_count, study.active_count) == (0, 0)
