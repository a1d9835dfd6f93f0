from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.conftest import Api

Create = Callable[..., str]


@pytest.fixture
def asked(api: Api, study: Create) -> str:
    """A study of which three trials are being measured."""
    name = study()
    operation = api.ok("POST", f"/studies/{name}/suggestions", {"count": 3, "client_id": "c"})
    assert (operation["state"], [trial["number"] for trial in operation["trials"]]) == ("SUCCEEDED", [1, 2, 3])
    assert api.ok("GET", f"/operations/{operation['id']}") == operation
    return name


def test_a_trial_from_ask_to_tell(api: Api, asked: str) -> None:
    done = api.ok("POST", "/studies/s/trials/1/complete", {"metrics": {"seconds": 2}})
    assert (done["state"], done["metrics"], done["origin"]) == ("COMPLETED", {"seconds": 2.0}, "default")
    assert api.ok("POST", "/studies/s/trials/1/complete", {"metrics": {"seconds": 2.0}}) == done
    api.refused(409, "trial_already_finished", "POST", "/studies/s/trials/1/complete", {"metrics": {"seconds": 3}})
    api.ok("POST", "/studies/s/trials/2/measurements", {"step": 1, "metrics": {"seconds": 9}, "elapsed_seconds": 0.5})
    stopped = api.ok("POST", "/studies/s/trials/2/stop", {"reason": "slow"})
    assert (stopped["state"], stopped["metrics"], stopped["reason"]) == ("PRUNED", {"seconds": 9.0}, "slow")
    failed = api.ok("POST", "/studies/s/trials/3/fail", {"infeasible": True, "reason": "does not compile"})
    assert failed["state"] == "INFEASIBLE"
    detail = api.ok("GET", "/studies/s/trials/2")
    assert detail["measurements"] == [{"step": 1, "metrics": {"seconds": 9.0}, "elapsed_seconds": 0.5}]
    assert detail["log"] == ""


def test_enqueued_trials_wait_for_the_next_ask(api: Api, study: Create) -> None:
    study()
    body = {"params": {"x": 0.5, "n": 4}, "count": 2}
    waiting = api.ok("POST", "/studies/s/queue", body)["trials"]
    assert [(one["number"], one["state"], one["origin"]) for one in waiting] == [
        (1, "REQUESTED", "enqueued"),
        (2, "REQUESTED", "enqueued"),
    ]
    api.refused(400, "invalid_argument", "POST", "/studies/s/queue", {**body, "count": 0})
    operation = api.ok("POST", "/studies/s/suggestions", {"count": 2})
    assert [one["number"] for one in operation["trials"]] == [1, 2]


def test_trials_are_listed_by_number_state_client_and_revision(api: Api, asked: str) -> None:
    def numbers(query: str) -> list[int]:
        return [t["number"] for t in api.ok("GET", f"/studies/s/trials?{query}")["trials"]]

    api.ok("POST", "/studies/s/trials/2/complete", {"metrics": {"seconds": 2}})
    seen = api.ok("GET", "/studies/s/trials?after_revision=0")
    assert (seen["more"], seen["revision"]) == (False, api.ok("GET", "/studies/s")["revision"])
    assert numbers(f"after_revision={seen['revision']}") == []
    api.ok("POST", "/studies/s/trials/1/fail", {"infeasible": False})
    assert numbers(f"after_revision={seen['revision']}") == [1]
    assert numbers("") == [1, 2, 3]
    assert numbers("newest_first=true&page_size=2") == [3, 2]
    assert numbers("state=COMPLETED&state=FAILED") == [1, 2]
    assert numbers("client_id=c&state=ACTIVE") == [3]
    assert numbers("client_id=nobody") == []
    page = api.ok("GET", "/studies/s/trials?page_size=2")
    assert page["more"]
    assert numbers(f"page_token={page['next_page_token']}") == [3]


def test_an_ask_by_the_same_client_gets_its_trials_back(api: Api, asked: str) -> None:
    again = api.ok("POST", "/studies/s/suggestions", {"count": 2, "client_id": "c"})
    assert [trial["number"] for trial in again["trials"]] == [1, 2]
    further = api.ok("POST", "/studies/s/suggestions", {"count": 1, "client_id": "c", "held_trials": [1, 2, 3]})
    assert [trial["number"] for trial in further["trials"]] == [4]


def test_fixed_parameters_are_kept(api: Api, study: Create) -> None:
    study()
    trials = api.ok("POST", "/studies/s/suggestions", {"count": 4, "fixed": {"n": 7}})["trials"]
    assert {trial["params"]["n"] for trial in trials} == {7}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/studies/s/trials/1/complete", {"metrics": {}}, "metrics.seconds"),
        ("/studies/s/trials/1/complete", {"metrics": {"seconds": "fast"}}, "metrics.seconds"),
        ("/studies/s/trials/1/complete", {"metrics": 3}, "metrics"),
        ("/studies/s/results", {"results": [{"trial": 1, "metrics": {}}]}, "results[0].metrics.seconds"),
        ("/studies/s/results", {"results": []}, "results"),
        ("/studies/s/trials/1/complete", {}, "metrics"),
        ("/studies/s/trials/1/fail", {}, "infeasible"),
        ("/studies/s/trials/1/measurements", {"step": -1, "metrics": {"seconds": 1}}, "step"),
        ("/studies/s/trials", {"params": {"x": 2, "n": 4}, "metrics": {"seconds": 1}}, "x"),
        ("/studies/s/trials", {"params": {"x": 0.5, "n": 4, "y": 1}, "metrics": {"seconds": 1}}, "y"),
        ("/studies/s/suggestions", {"count": 0}, "count"),
        ("/studies/s/suggestions", {"count": "many"}, "count"),
        ("/studies/s/suggestions", {"held_trials": [1, "b"]}, "held_trials[1]"),
        ("/studies/s/suggestions", {"fixed": {"z": 1}}, "fixed.z"),
    ],
)
def test_bad_input_names_the_field_and_changes_nothing(
    api: Api, asked: str, path: str, body: object, field: str
) -> None:
    before = api.ok("GET", "/studies/s")
    problem = api.refused(400, "invalid_argument", "POST", path, body)
    assert problem["data"]["field"].endswith(field), problem
    assert problem["data"]["allowed"]
    assert api.ok("GET", "/studies/s") == before


def test_bad_queries_name_the_field(api: Api, asked: str) -> None:
    for query, field, value in (
        ("state=LOST", "state[0]", "LOST"),
        ("state=ACTIVE&state=LOST", "state[1]", "LOST"),
        ("page_size=x", "page_size", "x"),
        ("page_size=5000", "page_size", 5000),
        ("page_token=x", "page_token", "x"),
        ("after_revision=1&state=ACTIVE", "state", "['ACTIVE']"),
        ("sort=up", "sort", "up"),
    ):
        data = api.refused(400, "invalid_argument", "GET", f"/studies/s/trials?{query}")["data"]
        assert (data["field"], data["value"]) == (field, value)


def test_unknown_things_are_not_found(api: Api, asked: str) -> None:
    api.refused(404, "trial_not_found", "GET", "/studies/s/trials/99")
    api.refused(404, "trial_not_found", "GET", "/studies/s/trials/99999999999999999999")
    api.refused(404, "trial_not_found", "POST", "/studies/s/trials/99/stop", {})
    api.refused(404, "study_not_found", "GET", "/studies/none/trials")
    api.refused(404, "operation_not_found", "GET", "/operations/none")
    api.refused(404, "agent_not_found", "GET", "/agents/none")
    api.refused(404, "not_found", "GET", "/studies/s/trials/first")
