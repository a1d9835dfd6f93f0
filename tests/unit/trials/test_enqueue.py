"""Configurations of the user's own that are measured before anything else is suggested."""

from typing import Any

import pytest

from service.core.errors import InvalidInput
from service.planning.create import create_study, update_state
from service.studies import selectors
from service.tenancy.principal import Principal
from service.trials import enqueue
from service.trials.tell import add_trial
from tests.factories.domain import ask, make_spec, refused, study_name, tell

pytestmark = pytest.mark.django_db(transaction=True)

PARAMS = {"x": 0.5, "n": 2}


def put(principal: Principal, study: str, **options: Any) -> list[int]:
    return [trial.number for trial in enqueue.enqueue_trials(principal, study, params=PARAMS, **options)[1]]


def test_asks_get_each_enqueued_trial_once_and_first(principal: Principal) -> None:
    study = create_study(principal, study_name(), make_spec()).name
    assert put(principal, study, count=3) == [1, 2, 3]
    first = ask(principal, study, 2, client_id="a")
    second = ask(principal, study, 2, client_id="b")
    assert [(trial.number, trial.origin, trial.client_id) for trial in [*first, *second]] == [
        (1, "enqueued", "a"),
        (2, "enqueued", "a"),
        (3, "enqueued", "b"),
        (4, "suggested", "b"),
    ]
    assert {trial.state for trial in first} == {"ACTIVE"}
    assert first[0].params == PARAMS
    tell(principal, study, first[0])
    after = selectors.get_study(principal, study)
    assert (after.requested_count, after.active_count, after.finished_count) == (0, 3, 1)


def test_enqueued_trials_return_to_their_client_and_skip_requests_with_fixed_values(principal: Principal) -> None:
    study = create_study(principal, study_name(), make_spec()).name
    put(principal, study, count=2)
    (mine,) = ask(principal, study, client_id="a")
    assert ask(principal, study, client_id="a")[0].number == mine.number
    (other,) = ask(principal, study, fixed={"n": 7})
    assert (other.number, other.origin) == (3, "suggested")


def test_parameters_that_are_left_out_take_their_defaults(principal: Principal) -> None:
    space = {
        "parameters": [
            {"name": "alg", "type": "categorical", "values": ["a", "b"], "default": "a"},
            {"name": "depth", "type": "int", "min": 1, "max": 9, "default": 3,
             "condition": {"parent": "alg", "values": ["b"]}},
        ]
    }  # fmt: skip
    study = create_study(principal, study_name(), make_spec(space=space)).name

    def params(**given: object) -> object:
        return enqueue.enqueue_trials(principal, study, params=given)[1][0].params

    assert params() == {"alg": "a"}
    assert params(alg="b") == {"alg": "b", "depth": 3}
    assert params(alg="b", depth=9) == {"alg": "b", "depth": 9}
    error = refused("invalid_argument", lambda: params(depth=9))
    assert "active only if alg is 'b'" in error.message
    refused("invalid_argument", lambda: params(alg=None))


def test_they_are_counted_against_the_budget(principal: Principal) -> None:
    study = create_study(principal, study_name(), make_spec(budget={"max_trials": 3})).name
    put(principal, study, count=2)
    assert refused("budget_exhausted", lambda: put(principal, study, count=2)).data["left"] == 1
    trials = ask(principal, study, 5)
    assert [trial.origin for trial in trials] == ["enqueued", "enqueued", "suggested"]
    for trial in trials:
        tell(principal, study, trial)
    assert selectors.get_study(principal, study).state == "COMPLETED"
    refused("study_not_active", lambda: put(principal, study))


def test_sent_twice_they_are_enqueued_once(principal: Principal) -> None:
    study = create_study(principal, study_name(), make_spec(budget={"max_trials": 4})).name
    for _ in range(2):
        assert put(principal, study, count=3, request_id="r") == [1, 2, 3]
    add_trial(principal, study, params=PARAMS, metrics={"seconds": 1.0})
    other = create_study(principal, study_name(), make_spec()).name
    refused("request_id_reused", lambda: put(principal, other, request_id="r"))
    assert put(principal, study, count=3, request_id="r") == [1, 2, 3]


def test_a_paused_study_takes_them_and_gives_them_out_when_it_goes_on(principal: Principal) -> None:
    study = create_study(principal, study_name(), make_spec()).name
    update_state(principal, study, "PAUSED")
    put(principal, study)
    refused("study_not_active", lambda: ask(principal, study))
    update_state(principal, study, "ACTIVE")
    assert ask(principal, study)[0].origin == "enqueued"


def test_the_default_put_there_by_its_user_is_not_measured_a_second_time(principal: Principal) -> None:
    spec = make_spec()
    for parameter in spec["space"]["parameters"]:
        parameter["default"] = PARAMS.get(parameter["name"])
    study = create_study(principal, study_name(), spec).name
    put(principal, study)
    assert [trial.origin for trial in ask(principal, study, 3)].count("default") == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"count": 0}, "count"),
        ({"count": 1001}, "count"),
        ({"params": {"x": 7.0, "n": 2}}, "params.x"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_changes(principal: Principal, options: dict[str, Any], field: str) -> None:
    study = create_study(principal, study_name(), make_spec()).name
    with pytest.raises(InvalidInput) as caught:
        enqueue.enqueue_trials(principal, study, **{"params": PARAMS, **options})
    assert caught.value.data["field"] == field
    assert selectors.get_study(principal, study).trial_count == 0
