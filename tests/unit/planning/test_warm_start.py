"""A warm start: the best configurations of earlier studies are measured first."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from service.core.errors import Forbidden, InvalidInput
from service.planning.create import create_study, delete_study
from service.planning.plan import plan
from service.studies import selectors
from service.studies.models import Study, Trial
from service.studies.specs import StartedFrom, forget, spec_of
from service.tenancy import access
from service.tenancy.models import AuditEntry
from service.tenancy.principal import Principal
from service.trials import messages, tuners
from service.trials.ask import ask as ask_trials
from service.trials.tell import add_trial, fail_trial
from service.workers import compute
from tests.factories.domain import ask, make_execution, make_principal, make_spec, refused, study_name, tell

pytestmark = pytest.mark.django_db(transaction=True)

X = {"name": "x", "type": "float", "min": 0.0, "max": 1.0}
N = {"name": "n", "type": "int", "min": 1, "max": 16}
DEFAULT = {"x": 0.5, "n": 4}


def make_earlier(principal: Principal, values: dict[float, float], **changes: Any) -> str:
    """A study that has measured these values of x, each with these seconds."""
    name = create_study(principal, study_name(), make_spec(**changes)).name
    for x, seconds in values.items():
        add_trial(principal, name, params={"x": x, "n": 4}, metrics={"seconds": seconds})
    return name


def start(principal: Principal, *names: str, **changes: Any) -> Study:
    return create_study(principal, study_name(), make_spec(start_from=list(names), **changes))


def waiting(principal: Principal, study: Study) -> list[Trial]:
    return selectors.list_trials(principal, study.name, states=["REQUESTED"]).items


def with_defaults() -> dict[str, Any]:
    return {"parameters": [{**X, "default": DEFAULT["x"]}, {**N, "default": DEFAULT["n"]}]}


def test_the_best_come_first_in_turn_and_each_once(principal: Principal) -> None:
    one = make_earlier(principal, {0.1: 1.0, 0.2: 2.0, 0.3: 3.0, 0.4: 4.0, 0.9: 9.0})
    two = make_earlier(principal, {0.2: 5.0, 0.7: 6.0, 0.8: 7.0})
    none = make_earlier(principal, {})
    study = start(principal, one, two, none)
    trials = waiting(principal, study)
    # 0.2 is both the second of the one and the first of the other.
    assert [trial.params["x"] for trial in trials] == [0.1, 0.2, 0.7, 0.3, 0.8]
    assert {(trial.origin, trial.state, trial.metrics) for trial in trials} == {("earlier", "REQUESTED", None)}
    reported = (StartedFrom(one, 2, 0), StartedFrom(two, 3, 0), StartedFrom(none, 0, 0))
    assert spec_of(selectors.get_study(principal, study.name)).started_from == reported
    entry = access.rows(AuditEntry, principal).get(action="study.create", target=f"study/{study.name}")
    assert entry.detail == {"started_from": [one.to_json() for one in reported]}
    asked = ask(principal, study.name, 6)
    assert [trial.origin for trial in asked] == ["earlier"] * 5 + ["suggested"]
    assert [trial.number for trial in asked] == [1, 2, 3, 4, 5, 6]


def test_the_default_is_measured_before_them_and_not_twice(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.5: 1.0, 0.6: 2.0})
    study = start(principal, earlier, space=with_defaults())
    assert [(trial.params, trial.origin) for trial in waiting(principal, study)] == [
        (DEFAULT, "default"),
        ({"x": 0.6, "n": 4}, "earlier"),
    ]
    assert [trial.origin for trial in ask(principal, study.name, 4)] == ["default", "earlier", "suggested", "suggested"]


def test_on_agents_earlier_configurations_come_before_suggested_ones(principal: Principal) -> None:
    execution = {"execution": make_execution(parallelism=3)}
    earlier = make_earlier(principal, {0.1: 1.0, 0.2: 2.0}, **execution)
    study = start(principal, earlier, space=with_defaults(), **execution)
    assert [trial.origin for trial in waiting(principal, study)] == ["default", "earlier", "earlier", "suggested"]


@pytest.mark.parametrize(("most", "origins"), [(1, ["default"]), (3, ["default", "earlier", "earlier"])])
def test_they_count_against_the_budget(principal: Principal, most: int, origins: list[str]) -> None:
    earlier = make_earlier(principal, {0.1: 1.0, 0.2: 2.0, 0.3: 3.0})
    study = start(principal, earlier, space=with_defaults(), budget={"max_trials": most})
    trials = ask(principal, study.name, 9)
    assert [trial.origin for trial in trials] == origins
    for trial in trials:
        tell(principal, study.name, trial)
    assert selectors.get_study(principal, study.name).state == "COMPLETED"


def test_configurations_outside_the_space_are_skipped(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0, 0.2: 2.0, 0.6: 3.0})
    space = {"parameters": [{**X, "min": 0.15}, {"name": "new", "type": "int", "min": 1, "max": 9, "default": 7}]}
    study = start(principal, earlier, space=space)
    assert [trial.params for trial in waiting(principal, study) if trial.origin == "earlier"] == [
        {"x": 0.2, "new": 7},
        {"x": 0.6, "new": 7},
    ]
    assert spec_of(study).started_from == (StartedFrom(earlier, 2, 1),)


def test_studies_with_nothing_in_common_give_nothing(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0})
    study = start(principal, earlier, space={"parameters": [{**X, "name": "y", "default": 0.5}]})
    assert (study.trial_count, spec_of(study).started_from) == (0, (StartedFrom(earlier, 0, 1),))
    assert ask(principal, study.name)[0].origin == "default"


def test_failed_and_infeasible_trials_are_not_taken_over(principal: Principal) -> None:
    limit = {"outcome_constraints": ["memory <= 100"]}
    name = create_study(principal, study_name(), make_spec(**limit)).name
    for x, memory in ((0.1, 200.0), (0.2, 50.0)):
        add_trial(principal, name, params={"x": x, "n": 1}, metrics={"seconds": x, "memory": memory})
    (failed,) = ask(principal, name)
    fail_trial(principal, name, failed.number, infeasible=True, reason="does not build")
    assert [trial.params["x"] for trial in waiting(principal, start(principal, name))] == [0.2]
    # Nor where all did.
    only = create_study(principal, study_name(), make_spec(**limit)).name
    add_trial(principal, only, params={"x": 0.1, "n": 1}, metrics={"seconds": 1.0, "memory": 200.0})
    assert spec_of(start(principal, only)).started_from == (StartedFrom(only, 0, 0),)


def test_a_warm_start_takes_the_pareto_front_from_its_ends(principal: Principal) -> None:
    goals = {"objectives": [{"metric": "seconds", "goal": "minimize"}, {"metric": "rate", "goal": "maximize"}]}
    name = create_study(principal, study_name(), make_spec(**goals)).name
    # The more seconds, the higher the rate; the last is worse in both.
    points = [(step / 10, step, step) for step in range(1, 10)] + [(0.95, 9, 1)]
    for x, seconds, rate in points:
        metrics = {"seconds": float(seconds), "rate": float(rate)}
        add_trial(principal, name, params={"x": x, "n": 1}, metrics=metrics)
    found = [trial.params["x"] for trial in waiting(principal, start(principal, name, **goals))]
    assert found == [0.1, 0.9, 0.5, 0.3, 0.7]


def test_the_plan_shows_the_same_start_as_the_created_study(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0, 0.2: 2.0})
    spec = make_spec(space=with_defaults(), start_from=[earlier])
    planned = plan(principal, spec)
    assert planned.started_from == (StartedFrom(earlier, 2, 0),)
    study = create_study(principal, study_name(), spec)
    assert list(planned.first) == [trial.params for trial in ask(principal, study.name, 3)]


@pytest.mark.parametrize("algorithm", ["shuffled-grid", "grid"])
def test_taken_over_configurations_are_not_measured_again_without_noise(principal: Principal, algorithm: str) -> None:
    space = {"parameters": [{**N, "max": 3}, {"name": "b", "type": "bool"}]}
    spec = {"space": space, "noisy": False, "algorithm": {"name": algorithm}}
    name = create_study(principal, study_name(), make_spec(**spec)).name
    for n in (1, 2):
        add_trial(principal, name, params={"n": n, "b": True}, metrics={"seconds": float(n)})
    planned = plan(principal, make_spec(start_from=[name], **spec))
    study = start(principal, name, **spec)
    measured = []
    for _ in range(6):
        (trial,) = ask(principal, study.name)
        measured.append(trial.params)
        tell(principal, study.name, trial)
    assert measured[: len(planned.first)] == planned.first
    assert len({(one["n"], one["b"]) for one in measured}) == 6


def test_created_again_with_the_same_request_it_is_the_same_study(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0})
    spec, name = make_spec(start_from=[earlier]), study_name()
    made = create_study(principal, name, spec, request_id="r")
    # The answer is as before, even if the earlier study is gone.
    delete_study(principal, earlier)
    again = create_study(principal, name, spec, request_id="r")
    assert (again.pk, again.trial_count, spec_of(again).start_from) == (made.pk, 1, (earlier,))


def test_a_study_whose_algorithm_learned_in_an_older_version_goes_on(
    principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "send", lambda _: None)
    earlier = make_earlier(principal, {0.1: 1.0})
    study = start(principal, earlier, algorithm={"name": "gp"})
    learned = {
        **study.spec,
        "start_from": [{"study": earlier, "learn": True}],
        "started_from": [{"study": earlier, "taken": 1, "passed_over": 0, "learned": 1}],
    }
    access.rows(Study, principal).filter(pk=study.pk).update(spec=learned)
    forget(study)
    tuners._learners.clear()
    (trial,) = ask(principal, study.name)
    tell(principal, study.name, trial)
    operation = ask_trials(principal, study.name).operation
    compute.compute(operation.id)
    assert len(selectors.get_operation(principal, operation.id).trials) == 1
    stored = selectors.get_study(principal, study.name)
    assert (spec_of(stored).start_from, spec_of(stored).started_from) == ((earlier,), (StartedFrom(earlier, 1, 0),))


def test_another_tenant_s_study_is_not_found_and_nothing_is_created(principal: Principal) -> None:
    foreign = make_earlier(make_principal(), {0.1: 1.0})
    for name in (foreign, "nowhere"):
        error = refused("study_not_found", partial(start, principal, name))
        assert isinstance(error, InvalidInput)
        assert (error.data["field"], error.data["value"]) == ("start_from[0]", name)
    assert selectors.list_studies(principal).total_count == 0


def test_a_study_of_another_component_is_refused(principal: Principal) -> None:
    plain = make_earlier(principal, {0.1: 1.0})
    compiler = make_earlier(principal, {0.1: 1.0}, execution=make_execution())
    error = refused("other_component", lambda: start(principal, compiler, plain, execution=make_execution()))
    assert (error.data["field"], error.data["allowed"]) == ("start_from[1]", "a study of the component 'compiler'")
    assert refused("other_component", lambda: start(principal, compiler)).data["component"] == "compiler"


def test_a_token_for_one_study_reads_no_other(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0})
    bound = replace(principal, study="mine")
    error = refused("not_permitted", lambda: create_study(bound, "mine", make_spec(start_from=[earlier])))
    assert isinstance(error, Forbidden)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("a", "start_from"),
        ({"a": 1}, "start_from"),
        ([f"s{index}" for index in range(6)], "start_from"),
        (["a", "a"], "start_from[1]"),
        (0, "start_from"),
        (False, "start_from"),
        ([3], "start_from[0]"),
        (["no name"], "start_from[0]"),
        ([{"study": "a", "learn": True}], "start_from[0]"),
    ],
)
def test_invalid_names_of_earlier_studies_are_refused(principal: Principal, given: object, field: str) -> None:
    spec = make_spec(start_from=given)
    error = refused("invalid_argument", lambda: create_study(principal, study_name(), spec))
    assert error.data["field"] == field
