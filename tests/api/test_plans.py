from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from service.algorithms import registry
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.trial import Trial
from service.identity.principals import administrator
from service.studies.models import Trial as StoredTrial
from service.tenancy import access
from tests.api.conftest import SPEC, Api
from tests.api.test_agents import register


@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize("algorithm", ["random", "ga", "sobol"])
def test_the_first_configurations_are_those_that_the_study_then_asks_for(api: Api, algorithm: str, noisy: bool) -> None:
    spec = {**SPEC, "algorithm": {"name": algorithm}, "noisy": noisy}
    planned = api.ok("POST", "/plans", {"spec": spec})
    assert api.ok("GET", "/studies")["total_count"] == 0
    api.ok("POST", "/studies", {"name": "s", "spec": spec})
    api.ok("POST", "/studies/s/suggestions", {"count": 3})
    trials = api.ok("GET", "/studies/s/trials")["trials"]
    assert planned["first"] == [trial["params"] for trial in trials]
    assert len(planned["first"]) == 3


def test_what_only_a_worker_can_suggest_is_not_planned(api: Api) -> None:
    spec = {**SPEC, "algorithm": {"name": "cmaes"}}
    assert api.ok("POST", "/plans", {"spec": spec})["first"] == [{"x": 0.5, "n": 4}]


@pytest.mark.parametrize("noisy", [True, False])
def test_a_model_begins_as_planned_without_being_asked(api: Api, noisy: bool) -> None:
    spec = {**SPEC, "algorithm": {"name": "gp"}, "noisy": noisy}
    first = api.ok("POST", "/plans", {"spec": spec})["first"]
    problem = Problem.from_json({key: spec[key] for key in ("space", "objectives", "noisy")})
    designer = registry.create("gp", problem, seed=spec["seed"], options={})
    default = Trial(number=1, configuration=first[0], state=TrialState.REQUESTED, metrics={})
    assert first[0] == {"x": 0.5, "n": 4}
    assert list(designer.suggest(2, cursor=0, pending=[default]).configurations) == first[1:]
    few = {**spec, "algorithm": {"name": "gp", "options": {"initial": 2}}}
    assert api.ok("POST", "/plans", {"spec": few})["first"] == first[:2]


def test_a_plan_tells_what_was_chosen_and_refuses_what_creating_would(api: Api) -> None:
    planned = api.ok("POST", "/plans", {"spec": {**SPEC, "algorithm": {"name": "auto"}}})
    assert planned["algorithm_choice"]["name"] == "gp"
    assert "model" in planned["algorithm_choice"]["reason"]
    assert planned["size"] is None
    assert (planned["agents"], planned["duration"]) == ([], None)
    counted = {"parameters": [{"name": "n", "type": "int", "min": 1, "max": 16}]}
    assert api.ok("POST", "/plans", {"spec": {**SPEC, "space": counted}})["size"] == "16"
    problem = api.refused(400, "invalid_argument", "POST", "/plans", {"spec": {**SPEC, "objectives": []}})
    assert problem["data"]["field"] == "objectives"


def test_a_plan_says_which_agents_can_run_it_and_why_others_cannot(api: Api) -> None:
    register("able")
    register("bare", components=[{"name": "mpi", "digest": "m", "applications": ["ring"]}])
    execution = {"component": "gcc-flags", "application": "small"}

    def told(**changes: Any) -> dict[str, str]:
        spec = {**SPEC, "execution": {**execution, **changes}}
        return {one["name"]: one["obstacle"] for one in api.ok("POST", "/plans", {"spec": spec})["agents"]}

    assert told() == {"able": "", "bare": "offers mpi, not gcc-flags"}
    assert told(digest="d2")["able"] == "has another version, d1"
    assert told(application="huge")["able"] == "has no application huge, but small"
    api.ok("PATCH", "/agents/able", {"draining": True})
    assert "drained" in told()["able"]


def test_the_duration_is_told_by_past_trials_of_the_same_kind(api: Api) -> None:
    execution = {"component": "gcc-flags", "application": "small", "parallelism": 2}
    spec = {**SPEC, "execution": execution, "budget": {"max_trials": 9}}
    assert api.ok("POST", "/plans", {"spec": spec})["duration"] is None
    api.ok("POST", "/studies", {"name": "s", "spec": spec})
    trials = access.rows(StoredTrial, administrator()).filter(number__lte=3)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for trial, seconds in zip(trials.order_by("number"), (10, 20, 60), strict=True):
        trials.filter(pk=trial.pk).update(
            state="COMPLETED", started_at=start, finished_at=start + timedelta(seconds=seconds)
        )
    # Five rounds of two at a time.
    expected = {"trial": 20.0, "total": 100.0, "low": 75.0, "high": 200.0, "basis": 3}
    assert api.ok("POST", "/plans", {"spec": spec})["duration"] == expected
    other = {**spec, "execution": {**execution, "application": "large"}}
    assert api.ok("POST", "/plans", {"spec": other})["duration"] is None
    short = {**spec, "budget": {"max_trials": 9, "max_seconds": 90}}
    assert api.ok("POST", "/plans", {"spec": short})["duration"]["total"] == 90


def test_the_catalogue_names_everything_with_its_options(api: Api) -> None:
    found = api.ok("GET", "/methods")
    assert {"auto", "gp", "random"} <= {one["name"] for one in found["algorithms"]}
    gp = next(one for one in found["algorithms"] if one["name"] == "gp")
    assert any(option["name"] == "initial" and option["doc"] for option in gp["options"])
    for kind in ("resampling", "estimators", "pruning", "stopping"):
        assert found[kind]
        assert all(one["doc"] for one in found[kind])
