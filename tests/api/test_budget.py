from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.conftest import Api

Create = Callable[..., str]


def extend(api: Api, trials: int | None, seconds: float | None = None) -> object:
    body = {"max_trials": trials, "max_seconds": seconds}
    return api.ok("PUT", "/studies/s/budget", body)["spec"]["budget"]


def test_an_extended_budget_counts_at_once(api: Api, study: Create) -> None:
    study(budget={"max_trials": 2})
    api.ok("POST", "/studies/s/suggestions", {"count": 2})
    api.refused(409, "budget_exhausted", "POST", "/studies/s/suggestions", {})
    assert extend(api, 3) == {"max_trials": 3, "max_seconds": None, "max_node_hours": None}
    assert api.ok("GET", "/studies/s")["spec"]["budget"]["max_trials"] == 3
    api.ok("POST", "/studies/s/suggestions", {"count": 1})
    for number in (1, 2):
        api.ok("POST", f"/studies/s/trials/{number}/complete", {"metrics": {"seconds": 1}})
    assert api.ok("GET", "/studies/s")["state"] == "ACTIVE"
    api.ok("POST", "/studies/s/trials/3/complete", {"metrics": {"seconds": 1}})
    ended = api.ok("GET", "/studies/s")
    assert (ended["state"], ended["state_reason"]) == ("COMPLETED", "All 3 trials of the budget are done.")
    api.refused(400, "invalid_argument", "PUT", "/studies/s/budget", {"max_trials": 3})
    assert api.ok("PUT", "/studies/s/budget", {"max_trials": 4})["state"] == "ACTIVE"
    api.ok("PATCH", "/studies/s", {"state": "ABORTED"})
    api.refused(409, "search_over", "PUT", "/studies/s/budget", {"max_trials": 9, "max_seconds": None})


def test_a_study_that_has_ended_is_given_a_final_check(api: Api, study: Create) -> None:
    study(budget={"max_trials": 2}, final_check=None)
    for trial in api.ok("POST", "/studies/s/suggestions", {"count": 2})["trials"]:
        api.refused(409, "search_not_over", "POST", "/studies/s/check", {})
        value = {"seconds": 1.0 + trial["number"] % 2}
        api.ok("POST", f"/studies/s/trials/{trial['number']}/complete", {"metrics": value})
    body = {"max_trials": 8, "effects": 0, "width": None, "request_id": "r"}
    assert api.refused(400, "invalid_argument", "POST", "/studies/s/check", {"width": -1})["data"]["field"] == (
        "final_check.width"
    )
    begun = api.ok("POST", "/studies/s/check", body)
    assert (begun["state"], begun["search_end_reason"]) == ("ACTIVE", "All 2 trials of the budget are done.")
    assert api.ok("POST", "/studies/s/check", body) == begun
    for count in range(8):
        found = api.ok("GET", "/studies/s")
        assert (found["search_count"], found["check_count"], found["check_limit"]) == (2, count, 8)
        (trial,) = api.ok("POST", "/studies/s/suggestions", {"count": 1})["trials"]
        value = {"seconds": 2.0 if trial["params"] == {"x": 0.5, "n": 4} else 1.0}
        api.ok("POST", f"/studies/s/trials/{trial['number']}/complete", {"metrics": value})
    found = api.ok("GET", "/studies/s")
    assert (found["state"], found["search_count"], found["check_limit"]) == ("COMPLETED", 2, None)
    verdict = api.ok("GET", "/studies/s/analysis")["verdict"]
    assert (verdict["level"], verdict["trials"]) == ("proven", 8)
    assert verdict["gain"] == pytest.approx(0.5)
    assert api.ok("POST", "/studies/s/check", body)["state"] == "COMPLETED", "a late copy of the first request"
    (entry,) = [one for one in api.ok("GET", "/audit?target=study/s")["entries"] if one["action"] == "study.check"]
    assert entry["detail"]["max_trials"] == 8


def test_a_time_budget_counts_from_the_first_trial(api: Api, study: Create) -> None:
    study()
    api.ok("POST", "/studies/s/suggestions", {"count": 1})
    assert extend(api, None, 3600) == {"max_trials": None, "max_seconds": 3600, "max_node_hours": None}
    api.ok("POST", "/studies/s/suggestions", {"count": 1})
    refusal = api.refused(
        400, "invalid_argument", "PUT", "/studies/s/budget", {"max_trials": None, "max_seconds": 1e-6}
    )
    assert refusal["data"]["field"] == "budget.max_seconds"
    # A number too, for whoever shows the budget in another unit than seconds.
    assert 1e-6 < refusal["data"]["above"] < 3600
    too_long = api.refused(
        400, "invalid_argument", "PUT", "/studies/s/budget", {"max_trials": None, "max_seconds": 1e12}
    )
    assert (too_long["data"]["above"], too_long["data"]["at_most"]) == (0, 316_224_000)
    assert extend(api, None) == {"max_trials": None, "max_seconds": None, "max_node_hours": None}


@pytest.mark.parametrize(("trials", "field"), [(2, "budget.max_trials"), (0, "budget.max_trials"), ("x", "max_trials")])
def test_less_than_was_begun_is_refused(api: Api, study: Create, trials: object, field: str) -> None:
    study(budget={"max_trials": 5})
    api.ok("POST", "/studies/s/suggestions", {"count": 2})
    body = {"max_trials": trials, "max_seconds": None}
    assert api.refused(400, "invalid_argument", "PUT", "/studies/s/budget", body)["data"]["field"] == field
    assert api.ok("GET", "/studies/s")["spec"]["budget"]["max_trials"] == 5


def test_parts_omitted_from_a_budget_change_stay(api: Api, study: Create) -> None:
    study(budget={"max_trials": 5, "max_node_hours": 1.5})
    (trial,) = api.ok("POST", "/studies/s/suggestions", {"count": 1})["trials"]
    api.ok("POST", f"/studies/s/trials/{trial['number']}/complete", {"metrics": {"seconds": 1}})
    reported = api.ok("PUT", "/studies/s/budget", {"max_node_hours": 4})["spec"]["budget"]
    assert reported == {"max_trials": 5, "max_seconds": None, "max_node_hours": 4}
    refusal = api.refused(400, "invalid_argument", "PUT", "/studies/s/budget", {"max_node_hours": 0})
    assert refusal["data"]["field"] == "budget.max_node_hours"
    assert api.ok("PUT", "/studies/s/budget", {"max_node_hours": None})["spec"]["budget"]["max_node_hours"] is None
    assert api.ok("GET", "/studies")["studies"][0]["max_trials"] == 5
