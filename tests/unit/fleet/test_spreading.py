"""Studies with `stability:` on agents of different speed, against a real PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from service.core.errors import InvalidInput
from service.core.lifecycle import StudyState
from service.fleet import runs, waiting
from service.planning.create import create_study
from service.results.analysis import analyse, leaders
from service.studies.models import Trial
from service.tenancy import access
from service.tenancy.principal import Principal
from tests.factories.domain import make_execution, make_spec, study_name
from tests.factories.fleet import acquire, register, study

# The agents with the factor of their machines.
SPEED = {"fast": 1.0, "middle": 1.2, "slow": 1.5}


def begin(principal: Principal, stability: dict[str, object], trials: int = 45, **changes: object) -> str:
    """Return a new study on these agents, with a default that is slow and stable."""
    for agent in SPEED:
        register(principal, agent, slots=1)
    spec = make_spec(
        execution=make_execution(parallelism=3),
        budget={"max_trials": trials},
        stability=stability,
        final_check=None,
        **{"noisy": True, **changes},
    )
    spec["space"]["parameters"][0]["default"] = 0.1
    spec["space"]["parameters"][1] = {"name": "n", "type": "int", "min": 1, "max": 1, "default": 1}
    return create_study(principal, study_name(), spec).name


def seconds(x: float, agent: str) -> float:
    """Return a time that falls with x; from 0.6 on, a configuration is unstable on the slow agent."""
    return (10.0 - 6.0 * x) * SPEED[agent] * (2.0 if x > 0.6 and agent == "slow" else 1.0)


def work(principal: Principal, name: str, agents: list[str] | None = None, most: int = 200) -> int:
    """Have the agents run trials in turns until none of them gets one; return how many they have run."""
    ran = 0
    while ran < most:
        granted = [(agent, one) for agent in agents or SPEED for one in acquire(principal, 1, agent)]
        if not granted:
            break
        for agent, grant in granted:
            ran += 1
            runs.report_started(principal, agent_id=agent, lease=grant.lease, node=f"{agent}-node")
            metrics = {"seconds": seconds(float(grant.params["x"]), agent)}
            runs.settle(principal, agent_id=agent, lease=grant.lease, outcome="completed", metrics=metrics)
    return ran


def test_agents_of_different_speed_find_a_stable_configuration(principal: Principal) -> None:
    name = begin(principal, {"nodes": [1, 3]})
    work(principal, name)
    assert study(principal, name).state == StudyState.COMPLETED
    trials = list(access.rows(Trial, principal).filter(study__name=name))
    replicated = {trial.key for trial in trials if trial.origin == "replicate"}
    for key in replicated:
        nodes = [trial.node for trial in trials if trial.key == key]
        assert len(set(nodes)) == len(nodes), "a configuration was measured twice on one node"
    found = analyse(principal, study(principal, name))
    assert found.verdict is not None
    x = float(found.verdict.configuration["x"])
    assert 0.1 < x <= 0.6
    conditions = {one.code: one for one in found.verdict.conditions}
    assert conditions["stable"] == (
        "stable on 3 of 3 nodes; a new node may be 30 % worse with a probability of at most 63 %"
    )
    # The slow agent makes no configuration unstable that is only slower there.
    assert found.unstable
    assert all(float(one.configuration["x"]) > 0.6 for one in found.unstable)
    assert all(one.bad_names == ["slow-node"] for one in found.unstable)
    assert found.verdict.gain is not None
    assert found.verdict.gain == pytest.approx(1 - (10 - 6 * x) / (10 - 0.6), abs=0.05)
    unstable = [one.configuration for one in found.unstable]
    assert not [one for one in leaders(principal, study(principal, name)) if one in unstable]


def test_the_last_stage_waits_for_another_time(principal: Principal) -> None:
    name = begin(principal, {"nodes": [1, 3], "times": "24h"}, trials=25)
    ran = work(principal, name)
    assert 10 < ran < 25
    assert study(principal, name).state == StudyState.ACTIVE
    text = str(waiting.standing(principal, study(principal, name)).reason)
    assert text.startswith("The last stage goes on at 2")
    earlier = access.rows(Trial, principal).filter(study__name=name, state="COMPLETED")
    earlier.update(started_at=Now() - timedelta(hours=25))
    assert work(principal, name) == 25 - ran
    assert study(principal, name).state == StudyState.COMPLETED


def test_a_single_agent_measures_a_configuration_again_if_there_is_no_other(principal: Principal) -> None:
    name = begin(principal, {"nodes": [1, 2]}, trials=12)
    access.rows(Trial, principal).filter(study__name=name)
    for agent in ("middle", "slow"):
        register(principal, agent, slots=1, name="another")
    assert work(principal, name, ["fast"]) == 12
    found = analyse(principal, study(principal, name)).verdict
    assert found is not None
    assert "fewer_nodes" in {one.code for one in found.conditions}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"stability": {"nodes": [3, 1]}}, "stability.nodes[1]"),
        ({"stability": {}, "resampling": {"name": "adaptive"}}, "resampling.name"),
        ({"stability": {}, "noisy": False}, "stability"),
        ({"stability": {"times": "2h"}, "budget": {"max_seconds": 3600}}, "stability.times"),
        ({"stability": {"times": "2h"}, "execution": None}, "stability.times"),
        (
            {"stability": {}, "execution": make_execution(placement={"spread": False})},
            "execution.placement.spread",
        ),
    ],
)
def test_what_a_study_cannot_have(principal: Principal, changes: dict[str, object], field: str) -> None:
    spec = make_spec(**{"execution": make_execution(), "noisy": True, "final_check": None, **changes})
    with pytest.raises(InvalidInput) as caught:
        create_study(principal, study_name(), spec)
    assert caught.value.data["field"] == field
