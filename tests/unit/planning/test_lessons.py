"""With `learn: true`, the results of an earlier study are knowledge of a new study's algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from service.core.errors import Forbidden
from service.core.lesson import Lesson
from service.core.space import Configuration, FloatParameter, Space
from service.planning.create import create_study, delete_study
from service.planning.lessons import MOST_RUNS, chosen
from service.planning.plan import plan
from service.planning.space_changes import change_space
from service.studies import selectors
from service.studies.change import read
from service.studies.models import Study
from service.studies.specs import StartedFrom, StartFrom, parse, spec_of
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials import tuners
from service.trials.models import StudyLessons
from service.trials.tell import add_trial
from tests.factories.domain import make_principal, make_spec, refused, study_name

pytestmark = pytest.mark.django_db(transaction=True)

GP = {"algorithm": {"name": "gp"}}
RATE = [{"metric": "rate", "goal": "maximize"}]


def make_earlier(principal: Principal, values: dict[float, float], **changes: Any) -> str:
    """A study that has measured these values of x, each with these seconds."""
    name = create_study(principal, study_name(), make_spec(**changes)).name
    for x, seconds in values.items():
        add_trial(principal, name, params={"x": x, "n": 4}, metrics={"seconds": seconds, "rate": 1.0 / seconds})
    return name


def learning(principal: Principal, *names: str, **changes: Any) -> Study:
    entries = [{"study": name, "learn": True} for name in names]
    return create_study(principal, study_name(), make_spec(**{**GP, "start_from": entries, **changes}))


def lessons_of(principal: Principal, study: Study) -> Sequence[Lesson]:
    """The lessons with which a worker would suggest."""
    with access.work(principal), tuners.borrowed(read(principal, study.pk)) as (learner, _):
        return learner.tuner.method.lessons


def test_its_runs_are_copied_and_its_best_is_measured_first(principal: Principal) -> None:
    one = make_earlier(principal, {0.1: 1.0, 0.2: 2.0, 0.9: 9.0})
    two = make_earlier(principal, {0.3: 3.0, 0.4: 4.0})
    mixed = make_spec(**GP, start_from=[{"study": one, "learn": True}, two])
    study = create_study(principal, study_name(), mixed)
    reported = (StartedFrom(one, 3, 0, 3), StartedFrom(two, 2, 0, 0))
    assert spec_of(selectors.get_study(principal, study.name)).started_from == reported
    assert plan(principal, mixed).started_from == reported
    assert [trial.params["x"] for trial in selectors.list_trials(principal, study.name).items] == [
        0.1,
        0.3,
        0.2,
        0.4,
        0.9,
    ]
    configurations: list[Configuration] = [{"x": x, "n": 4} for x in (0.1, 0.2, 0.9)]
    assert lessons_of(principal, study) == [Lesson(one, configurations, [1.0, 2.0, 9.0])]


def test_they_stay_as_they_were_when_the_earlier_study_changes_or_is_deleted(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0, 0.2: 2.0})
    study = learning(principal, earlier)
    add_trial(principal, earlier, params={"x": 0.7, "n": 4}, metrics={"seconds": 0.1})
    delete_study(principal, earlier)
    tuners._learners.clear()
    assert [one.values for one in lessons_of(principal, study)] == [[1.0, 2.0]]
    delete_study(principal, study.name)
    assert not access.rows(StudyLessons, principal).exists()


def test_they_are_fitted_to_the_space_and_to_its_changes(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0, 0.5: 2.0, 0.9: 3.0})
    space = {"parameters": [{"name": "x", "type": "float", "min": 0.0, "max": 0.6}]}
    study = learning(principal, earlier, space=space)
    assert spec_of(study).started_from == (StartedFrom(earlier, 2, 1, 2),)
    change_space(principal, study.name, {"x": {"min": 0.3, "max": 0.6}})
    assert lessons_of(principal, study) == [Lesson(earlier, [{"x": 0.5}], [2.0])]


def test_a_study_without_learn_or_without_common_parameters_learns_nothing(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0})
    plain = create_study(principal, study_name(), make_spec(**GP, start_from=[{"study": earlier, "learn": False}]))
    assert spec_of(plain).start_from == (StartFrom(earlier),)
    other = learning(principal, earlier, space={"parameters": [{"name": "y", "type": "bool", "default": True}]})
    assert [spec_of(one).started_from[0].learned for one in (plain, other)] == [0, 0]
    assert not access.rows(StudyLessons, principal).exists()


def test_auto_learns_if_it_chooses_gp(principal: Principal) -> None:
    earlier = make_earlier(principal, {0.1: 1.0, 0.2: 2.0})
    auto = {"algorithm": {"name": "auto"}}
    assert spec_of(learning(principal, earlier, **auto)).started_from == (StartedFrom(earlier, 2, 0, 2),)
    many = spec_of(learning(principal, earlier, **auto, budget={"max_trials": 5000}))
    assert many.choice is not None
    assert many.choice.name == "cmaes"
    assert many.started_from == (StartedFrom(earlier, 2, 0, 0),)


@pytest.mark.parametrize(
    ("changes", "code", "said"),
    [
        ({"algorithm": {"name": "ga"}}, "invalid_argument", "gp"),
        ({"objectives": RATE}, "other_objective", "maximize rate"),
        ({"objectives": [{"metric": "seconds", "goal": "maximize"}]}, "other_objective", "maximize seconds"),
        ({"objectives": [{"metric": "seconds", "goal": "minimize"}, *RATE]}, "other_objective", "several objectives"),
    ],
)
def test_what_cannot_be_learned_is_refused(principal: Principal, changes: dict[str, Any], code: str, said: str) -> None:
    earlier = make_earlier(principal, {0.1: 1.0})
    error = refused(code, partial(learning, principal, earlier, **changes))
    assert error.data["field"] == "start_from[0].learn"
    assert said in str(error.data["allowed"])


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"learn": True}, "start_from[0].study"),
        ({"study": "a", "learn": 1}, "start_from[0].learn"),
        ({"study": "a", "weight": 1}, "start_from[0].weight"),
        ({"study": "no name"}, "start_from[0].study"),
    ],
)
def test_invalid_entries_are_refused(entry: object, field: str) -> None:
    error = refused("invalid_argument", lambda: parse(make_spec(start_from=[entry])))
    assert error.data["field"] == field
    assert refused("invalid_argument", lambda: parse(make_spec(start_from=["a", {"study": "a"}])))


def test_neither_another_tenant_nor_a_token_for_one_study_learns(principal: Principal) -> None:
    foreign = make_earlier(make_principal(), {0.1: 1.0})
    refused("study_not_found", lambda: learning(principal, foreign))
    earlier = make_earlier(principal, {0.1: 1.0})
    error = refused("not_permitted", lambda: learning(replace(principal, study="mine"), earlier))
    assert isinstance(error, Forbidden)
    assert not access.rows(StudyLessons, principal).exists()


def test_many_runs_become_means_that_span_all_values() -> None:
    space = Space.build([FloatParameter("x", 0.0, 1.0)])
    some: list[tuple[Configuration, float]] = [({"x": place / 1000}, float(place)) for place in range(200)]
    assert chosen(space, some) == some
    # Twice as many runs are the means of 200 configurations.
    assert chosen(space, some + [(one, value + 2.0) for one, value in some])[:2] == [
        ({"x": 0.0}, 1.0),
        ({"x": 0.001}, 2.0),
    ]
    large: list[tuple[Configuration, float]] = [({"x": place / 1000}, float(place)) for place in range(1000)]
    many = chosen(space, large)
    assert (len(many), many[0][1], many[-1][1]) == (MOST_RUNS, 0.0, 999.0)
