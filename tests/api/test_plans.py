from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from service.algorithms import registry
from service.core.errors import InvalidInput
from service.core.lifecycle import TrialState
from service.core.problem import Problem
from service.core.trial import TrialRecord
from service.fleet import dry_runs
from service.fleet.models import DryRun
from service.identity.principals import administrator
from service.planning import plan
from service.studies.models import Trial as StoredTrial
from service.tenancy import access
from tests.api.conftest import SPEC, Api
from tests.api.test_agents import register


@pytest.mark.parametrize("noisy", [True, False])
@pytest.mark.parametrize("algorithm", ["random", "ga", "sobol"])
def test_planned_configurations_equal_the_first_trials_of_the_study(api: Api, algorithm: str, noisy: bool) -> None:
    spec = {**SPEC, "algorithm": {"name": algorithm}, "noisy": noisy}
    planned = api.ok("POST", "/plans", {"spec": spec})
    assert api.ok("GET", "/studies")["total_count"] == 0
    api.ok("POST", "/studies", {"name": "s", "spec": spec})
    api.ok("POST", "/studies/s/suggestions", {"count": 3})
    trials = api.ok("GET", "/studies/s/trials")["trials"]
    assert planned["first"] == [trial["params"] for trial in trials]
    assert len(planned["first"]) == 3


def test_suggestions_of_costly_algorithms_are_not_planned(api: Api) -> None:
    spec = {**SPEC, "algorithm": {"name": "cmaes"}}
    assert api.ok("POST", "/plans", {"spec": spec})["first"] == [{"x": 0.5, "n": 4}]


@pytest.mark.parametrize("noisy", [True, False])
def test_a_model_begins_as_planned_without_being_asked(api: Api, noisy: bool) -> None:
    spec = {**SPEC, "algorithm": {"name": "gp"}, "noisy": noisy}
    first = api.ok("POST", "/plans", {"spec": spec})["first"]
    problem = Problem.from_json({key: spec[key] for key in ("space", "objectives", "noisy")})
    algorithm = registry.create("gp", problem, seed=spec["seed"], options={})
    default = TrialRecord(number=1, configuration=first[0], state=TrialState.REQUESTED, metrics={})
    assert first[0] == {"x": 0.5, "n": 4}
    assert list(algorithm.suggest(2, cursor=0, pending=[default]).configurations) == first[1:]
    few = {**spec, "algorithm": {"name": "gp", "options": {"initial": 2}}}
    assert api.ok("POST", "/plans", {"spec": few})["first"] == first[:2]


def test_a_plan_shows_the_chosen_algorithm_and_refuses_an_invalid_study(api: Api) -> None:
    planned = api.ok("POST", "/plans", {"spec": {**SPEC, "algorithm": {"name": "auto"}}})
    assert planned["algorithm_choice"]["name"] == "gp"
    assert "model" in planned["algorithm_choice"]["reason"]
    assert planned["size"] is None
    assert (planned["agents"], planned["duration"]) == ([], None)
    counted = {"parameters": [{"name": "n", "type": "int", "min": 1, "max": 16}]}
    assert api.ok("POST", "/plans", {"spec": {**SPEC, "space": counted}})["size"] == "16"
    grid = {
        "parameters": [{"name": name, "type": "int", "min": 1, "max": 4096} for name in "ab"],
        "constraints": ["a * b == 4096"],
    }
    planned = api.ok("POST", "/plans", {"spec": {**SPEC, "space": grid}})
    assert (planned["size"], planned["feasible"]) == (str(4096**2), "13")
    problem = api.refused(400, "invalid_argument", "POST", "/plans", {"spec": {**SPEC, "objectives": []}})
    assert problem["data"]["field"] == "objectives"


def test_a_plan_says_which_agents_can_run_it_and_why_others_cannot(api: Api) -> None:
    register("able")
    register("bare", components=[{"name": "mpi", "digest": "m", "applications": ["ring"]}])
    execution = {"component": "gcc-flags", "application": "small"}

    def reported(**changes: Any) -> dict[str, str]:
        spec = {**SPEC, "execution": {**execution, **changes}}
        return {one["name"]: one["obstacle"] for one in api.ok("POST", "/plans", {"spec": spec})["agents"]}

    assert reported() == {"able": "", "bare": "offers mpi, not gcc-flags"}
    assert reported(digest="d2")["able"] == "has another version, d1"
    register("other", components=[{"name": "gcc-flags", "digest": "d3", "applications": ["huge"]}])
    assert reported(application="huge")["able"] == "has no application huge, but small"
    api.ok("PATCH", "/agents/able", {"draining": True})
    assert "drained" in reported()["able"]


@pytest.mark.parametrize(
    ("changes", "field", "value", "code", "allowed"),
    [
        ({"execution": {"component": "gcc-flags", "application": "huge"}}, "execution.application", "huge",
         "unknown_application", "small"),
        ({"objectives": [{"metric": "secnds", "goal": "minimize"}]}, "objectives[0].metric", "secnds",
         "unknown_metric", "seconds"),
        ({"outcome_constraints": ["seconds <= 9", "size <= 4"]}, "outcome_constraints[1]", "size",
         "unknown_metric", "seconds"),
    ],
)  # fmt: skip
def test_names_that_the_component_lacks_are_refused(
    api: Api, changes: dict[str, Any], field: str, value: str, code: str, allowed: str
) -> None:
    spec = {**SPEC, "execution": {"component": "gcc-flags", "application": "small"}, **changes}
    api.ok("POST", "/plans", {"spec": spec})  # no agent offers the component: nothing is known of it
    register("a1")
    for path, more in (("/plans", {}), ("/studies", {"name": "s"}), ("/dry-runs", {"name": "s"})):
        refusal = api.refused(400, code, "POST", path, {**more, "spec": spec})
        data = refusal["data"]
        assert (data["field"], data["value"], data["allowed"]) == (field, value, allowed)
    file = (
        f"component: gcc-flags\napplication: {'huge' if 'execution' in changes else 'small'}\nobjectives: [{{minimize: "
    )
    file += "secnds" if "objectives" in changes else "seconds"
    file += "}]\noutcome_constraints: ['seconds <= 9', 'size <= 4']\n" if "outcome_constraints" in changes else "}]\n"
    refusal = api.refused(400, code, "POST", "/plans", {"file": file})
    assert refusal["data"]["line"] == {"application": 2, "metric": 3}.get(code.removeprefix("unknown_"), 0) + (
        field == "outcome_constraints[1]"
    )
    newer = {"name": "gcc-flags", "digest": "d2", "applications": ["huge"], "metrics": ["secnds", "size", "seconds"]}
    register("a2", components=[newer])
    if "execution" in changes:
        api.ok("POST", "/plans", {"spec": spec})  # one version has all of it


def test_past_trials_of_the_same_kind_predict_the_duration(api: Api) -> None:
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


RUNS = {**SPEC, "execution": {"component": "gcc-flags", "application": "small"}}


def reported(name: str) -> dict[str, Any]:
    command = {"step": "command", "argv": [name], "environment": {}}
    return {"commands": [command], "folder": "/w", "host": "h", "script": "", "scheduler_options": []}


def test_a_dry_run_takes_the_first_answer_of_a_suitable_agent(api: Api) -> None:
    """Once, however often somebody asks; the first of them that answers is believed."""
    asked = {"spec": RUNS, "name": "nightly-1"}
    nobody = api.ok("POST", "/dry-runs", asked)
    assert nobody["state"] == "unanswered"
    assert "No agent that can run component 'gcc-flags'" in nobody["message"]
    api.refused(400, "invalid_argument", "POST", "/dry-runs", {"spec": SPEC})
    api.refused(400, "invalid_argument", "POST", "/dry-runs", {"spec": {**RUNS, "objectives": []}})
    register("a1")
    register("a2")
    register("a3", components=[{"name": "another", "digest": "d1", "applications": ["small"]}])
    for _ in range(2):
        status, answer = api("POST", "/dry-runs", asked)
        assert (status, answer["state"], answer["agent"]) == (202, "waiting", "")
    first = api.ok("POST", "/plans", {"spec": RUNS})["first"]
    assert [one["params"] for one in answer["trials"]] == first
    principal = administrator()
    assert dry_runs.waiting(principal, "a3") == []
    ((key, trials),) = dry_runs.waiting(principal, "a1")
    assert [(one.study, one.application, one.params) for one in trials] == [
        ("nightly-1", "small", params) for params in first
    ]
    for agent in ("a2", "a1", "a2"):
        rendered: list[tuple[dict[str, Any] | None, str]] = [(reported(agent), "")] * 2 + [(None, "no such value")]
        dry_runs.answer(principal, agent_id=agent, dry_run=str(key), trials=rendered)
    assert dry_runs.waiting(principal, "a1") == []
    status, answer = api("POST", "/dry-runs", asked)
    assert (status, answer["state"], answer["agent"], answer["message"]) == (200, "answered", "a2", "")
    assert [one["invocation"] for one in answer["trials"]] == [reported("a2"), reported("a2"), None]
    assert [one["refusal"] for one in answer["trials"]] == ["", "", "no such value"]
    # After a minute things may be otherwise there.
    access.rows(DryRun, principal).update(answered_at=Now() - timedelta(seconds=61))
    assert api("POST", "/dry-runs", asked)[0] == 202
    assert len(dry_runs.waiting(principal, "a1")) == 1


def test_agents_that_do_not_answer(api: Api) -> None:
    register("old")
    asked = {"spec": RUNS}
    assert api("POST", "/dry-runs", asked)[0] == 202
    principal = administrator()
    rows = access.rows(DryRun, principal)
    rows.update(asked_at=Now() - timedelta(seconds=16))
    status, answer = api("POST", "/dry-runs", asked)
    assert (status, answer["state"]) == (200, "unanswered")
    assert answer["message"].startswith("No agent has answered within 15 s (old).")
    assert dry_runs.waiting(principal, "old") == []
    # One who asks again later waits again, and an answer that comes late counts all the same.
    rows.update(asked_at=Now() - timedelta(seconds=31))
    assert api("POST", "/dry-runs", asked)[0] == 202
    ((key, trials),) = dry_runs.waiting(principal, "old")
    with pytest.raises(InvalidInput):
        dry_runs.answer(principal, agent_id="old", dry_run=str(key), trials=[(reported("old"), "")])
    with pytest.raises(InvalidInput):
        dry_runs.answer(principal, agent_id="old", dry_run=str(key), trials=[(None, "")] * len(trials))
    dry_runs.answer(principal, agent_id="old", dry_run=str(key), trials=[(reported("old"), "")] * len(trials))
    assert api("POST", "/dry-runs", asked)[1]["agent"] == "old"
    # Questions are kept for minutes.
    rows.update(asked_at=Now() - timedelta(minutes=11))
    assert api("POST", "/dry-runs", {"spec": {**RUNS, "seed": 8}})[0] == 202
    assert rows.count() == 1


def test_a_name_is_judged_as_by_creating_and_nothing_is_written(api: Api) -> None:
    for name in ("", "-a", "a b", "a" * 64):
        reported = api.refused(400, "invalid_argument", "POST", "/study-name-checks", {"name": name})
        refused = api.refused(400, "invalid_argument", "POST", "/studies", {"name": name, "spec": SPEC})
        assert (reported["detail"], reported["data"]) == (refused["detail"], refused["data"])
    assert api("POST", "/study-name-checks", {"name": "s"})[0] == 204
    assert api("POST", "/study-name-checks", {"name": "s"})[0] == 204
    api.ok("POST", "/studies", {"name": "s", "spec": SPEC})
    reported = api.refused(409, "study_exists", "POST", "/study-name-checks", {"name": "s"})
    assert (
        reported["detail"]
        == api.refused(409, "study_exists", "POST", "/studies", {"name": "s", "spec": SPEC})["detail"]
    )
    api.ok("PATCH", "/studies/s", {"state": "ABORTED"})
    assert api("DELETE", "/studies/s")[0] == 204
    assert api("POST", "/study-name-checks", {"name": "s"})[0] == 204


CHAIN = [
    {
        "name": f"b{place}",
        "type": "bool",
        **({"condition": {"parent": f"b{place - 1}", "values": [True, False]}} if place else {}),
    }
    for place in range(50)
]


@pytest.mark.parametrize("algorithm", ["random", "ga", "sobol", "tpe", "auto"])
def test_a_chain_of_conditions_is_planned_and_asked(api: Api, algorithm: str) -> None:
    """It has one tree for each parameter, and 2**49 paths to the last one."""
    spec = {**SPEC, "space": {"parameters": CHAIN}, "algorithm": {"name": algorithm}}
    assert api.ok("POST", "/plans", {"spec": spec})["size"] == str(2**50)
    api.ok("POST", "/studies", {"name": "s", "spec": spec})
    assert api.ok("POST", "/studies/s/suggestions", {"count": 1})["state"] in ("SUCCEEDED", "PENDING")


def test_a_plan_that_takes_too_long_ends_with_the_reason(
    api: Api, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TRIMTAB_REQUEST_CPU_SECONDS = 0.2

    def first(*_: object) -> None:
        while True:
            pass

    monkeypatch.setattr(plan, "first_configurations", first)
    problem = api.refused(422, "computation_too_long", "POST", "/plans", {"spec": SPEC})
    assert problem["data"] == {"seconds": 0.2}
    assert "more than 0.2 s of CPU" in problem["detail"]
    assert problem["retryable"] is False
