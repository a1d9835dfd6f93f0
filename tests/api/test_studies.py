from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from service.fleet import waiting
from service.planning.create import create_study
from service.results import analysis, summaries
from tests.api.conftest import SPEC, Api, summarise_all
from tests.factories.domain import make_principal, make_spec

Create = Callable[..., str]


def test_a_study_comes_back_as_it_was_created(api: Api) -> None:
    created = api.ok("POST", "/studies", {"name": "s", "spec": SPEC})
    assert created == api.ok("GET", "/studies/s")
    assert created["spec"]["space"]["parameters"] == SPEC["space"]["parameters"]
    assert created["spec"]["budget"] == {"max_trials": None, "max_seconds": None, "max_node_hours": None}
    assert (created["state"], created["trial_count"], created["revision"]) == ("ACTIVE", 0, 1)


def test_the_list_is_filtered_and_paged(api: Api, study: Create) -> None:
    for name in ("a1", "a2", "b1"):
        study(name)
    api.ok("PATCH", "/studies/a1", {"state": "PAUSED"})
    first = api.ok("GET", "/studies?page_size=2")
    assert [item["name"] for item in first["studies"]] == ["b1", "a2"]
    assert first["total_count"] == 3
    second = api.ok("GET", f"/studies?page_size=2&page_token={first['next_page_token']}")
    assert ([item["name"] for item in second["studies"]], second["next_page_token"]) == (["a1"], "")

    def names(query: str) -> list[str]:
        return [item["name"] for item in api.ok("GET", f"/studies?{query}")["studies"]]

    assert names("name_prefix=a") == ["a2", "a1"]
    assert names("state=PAUSED") == ["a1"]
    assert names("state=PAUSED&state=ACTIVE") == ["b1", "a2", "a1"]
    assert names("component=none") == []


def test_states_step_as_the_table_allows(api: Api, study: Create) -> None:
    study()
    paused = api.ok("PATCH", "/studies/s", {"state": "PAUSED", "reason": "maintenance"})
    assert (paused["state"], paused["state_reason"]) == ("PAUSED", "maintenance")
    api.refused(409, "study_not_active", "POST", "/studies/s/suggestions", {})
    api.ok("PATCH", "/studies/s", {"state": "ACTIVE"})
    api.ok("PATCH", "/studies/s", {"state": "ABORTED"})
    api.refused(409, "invalid_step", "PATCH", "/studies/s", {"state": "ACTIVE"})


def test_deleting_twice_answers_the_same(api: Api, study: Create) -> None:
    study()
    assert api("DELETE", "/studies/s") == api("DELETE", "/studies/s") == (204, {})
    api.refused(404, "study_not_found", "GET", "/studies/s")
    api.refused(404, "study_not_found", "DELETE", "/studies/never")


def test_creating_is_idempotent_by_request_and_by_question(api: Api, study: Create) -> None:
    body = {"name": "s", "spec": SPEC, "request_id": "r1"}
    assert api.ok("POST", "/studies", body) == api.ok("POST", "/studies", body)
    api.refused(409, "study_exists", "POST", "/studies", {"name": "s", "spec": SPEC})
    api.ok("POST", "/studies", {"name": "s", "spec": SPEC, "load_if_exists": True})
    other = {**SPEC, "objectives": [{"metric": "m", "goal": "maximize"}]}
    api.refused(409, "study_differs", "POST", "/studies", {"name": "s", "spec": other, "load_if_exists": True})


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ({"spec": SPEC}, "name", None),
        ({"name": "no spaces", "spec": SPEC}, "name", "no spaces"),
        ({"name": "s"}, "spec", None),
        ({"name": "s", "spec": {**SPEC, "objectives": [{"metric": "m", "goal": "up"}]}}, "objectives[0].goal", "up"),
        (
            {
                "name": "s",
                "spec": {**SPEC, "space": {"parameters": [{"name": "x", "type": "float", "min": 2, "max": 1}]}},
            },
            "space[0].min",
            2,
        ),
        ({"name": "s", "spec": {**SPEC, "algorithm": {"name": "magic"}}}, "algorithm.name", "magic"),
        ({"name": "s", "spec": {**SPEC, "budget": {"max_trials": 0}}}, "budget.max_trials", 0),
        ({"name": "s", "spec": {**SPEC, "budgets": {}}}, "budgets", "{}"),
        ({"name": "s", "spec": SPEC, "speck": 1}, "speck", 1),
        ({"name": "s", "spec": SPEC, "load_if_exists": "perhaps"}, "load_if_exists", "perhaps"),
    ],
)
def test_a_bad_spec_is_refused_by_field_and_nothing_is_created(
    api: Api, body: dict[str, object], field: str, value: object
) -> None:
    problem = api.refused(400, "invalid_argument", "POST", "/studies", body)
    assert (problem["data"]["field"], problem["data"]["value"]) == (field, value)
    assert problem["data"]["allowed"]
    assert field in problem["detail"]
    assert api.ok("GET", "/studies")["total_count"] == 0


def test_the_analysis_follows_the_trials(api: Api, study: Create) -> None:
    study()
    before = api.ok("GET", "/studies/s/analysis")
    assert (before["default"], before["best"]) == (None, [])
    assert before["default_params"] == {"x": 0.5, "n": 4}
    assert before["objectives"] == [
        {
            "metric": "seconds",
            "goal": "minimize",
            "unit": "s",
            "default": None,
            "best": None,
            "gain": None,
            "gain_low": None,
            "gain_high": None,
            "noise": None,
        }
    ]

    def add(x: float, n: int, seconds: float) -> None:
        api.ok("POST", "/studies/s/trials", {"params": {"x": x, "n": n}, "metrics": {"seconds": seconds}})

    add(0.5, 4, 2.0)
    add(0.1, 8, 1.0)
    seen = api.ok("GET", "/studies/s/analysis")
    # A single run is drawn towards its neighbours.
    assert 0 < seen["objectives"][0]["gain"] < 0.5
    assert seen["verdict"]["level"] == "not yet known"
    # Replicates count by their median: the configuration that seemed best is not.
    add(0.1, 8, 4.0)
    add(0.1, 8, 5.0)
    add(0.2, 8, 1.5)
    after = api.ok("GET", "/studies/s/analysis")
    assert after["best"] == [{"numbers": [5], "params": {"x": 0.2, "n": 8}, "metrics": {"seconds": 1.5}}]
    assert after["default"] == {"numbers": [1], "params": {"x": 0.5, "n": 4}, "metrics": {"seconds": 2.0}}
    (shown,), verdict = after["objectives"], after["verdict"]
    assert shown["gain"] == pytest.approx(1 - shown["best"] / shown["default"])
    names = {"best": "value", "default": "default", "gain": "gain", "gain_low": "low", "gain_high": "high"}
    assert {name: shown[name] for name in names} == {name: verdict[of] for name, of in names.items()}
    assert (after["configurations"], after["space_size"]) == (3, None)
    assert after["objectives"][0]["noise"] > 0
    assert after["revision"] == api.ok("GET", "/studies/s")["revision"]
    assert [trial["number"] for trial in api.ok("GET", "/studies/s/best")["trials"]] == [5]
    assert api.ok("GET", "/studies")["studies"][0]["objectives"] == []
    summarise_all()
    (listed,) = api.ok("GET", "/studies")["studies"]
    assert listed["live"] is False
    (objective,) = listed["objectives"]
    (whole,) = after["objectives"]
    assert objective == {
        **{key: whole[key] for key in ("metric", "goal", "unit", "default", "best", "gain")},
        "low": whole["gain_low"],
        "high": whole["gain_high"],
        **{key: verdict[key] for key in ("level", "code", "runs", "default_runs", "measured", "doubtful")},
        **{key: verdict[key] for key in ("rounds", "disturbed_rounds", "conditions")},
        "context_words": None,
        "front": None,
        "trend": [2.0, 1.0, 1.0, 1.0, 1.0],
    }
    for _ in range(6):
        add(0.5, 4, 2.0)
        add(0.2, 8, 1.5)
    summarise_all()
    (objective,) = api.ok("GET", "/studies")["studies"][0]["objectives"]
    assert objective["level"] == "provisional"
    assert objective["gain"] == pytest.approx(0.25, abs=0.1)
    assert 0 < objective["low"] < objective["gain"] < objective["high"]


def test_results_that_take_long_to_sum_up_say_that_they_are_behind_and_come_later(
    api: Api, study: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(noisy=False)

    def add(n: int, seconds: float) -> None:
        api.ok("POST", "/studies/s/trials", {"params": {"x": 0.5, "n": n}, "metrics": {"seconds": seconds}})

    def shown() -> tuple[float | None, bool]:
        found = api.ok("GET", "/studies/s/analysis")
        return found["objectives"][0]["best"], found["behind"]

    def listed() -> float:
        best: float = api.ok("GET", "/studies")["studies"][0]["objectives"][0]["best"]
        return best

    add(4, 2.0)
    assert shown() == (2.0, False)
    summarise_all()
    monkeypatch.setattr(analysis, "_SLOW", 0.0)
    monkeypatch.setattr(analysis, "_REST", math.inf)
    add(8, 1.0)
    assert shown() == (2.0, True)
    summaries.refresh()
    assert listed() == 2.0
    # Who takes the best away gets it as it is now, and all others with that.
    assert [trial["number"] for trial in api.ok("GET", "/studies/s/best")["trials"]] == [2]
    assert shown() == (1.0, False)
    add(2, 0.5)
    assert shown() == (1.0, True)
    monkeypatch.setattr(analysis, "_REST", 0.0)
    assert shown() == (0.5, False)
    summarise_all()
    assert listed() == 0.5


def test_the_best_trials_of_several_objectives_are_the_pareto_front(api: Api, study: Create) -> None:
    study(objectives=[{"metric": "t", "goal": "minimize"}, {"metric": "rate", "goal": "maximize"}])
    for x, t, rate in ((0.5, 2.0, 10.0), (0.1, 1.0, 5.0), (0.2, 3.0, 20.0), (0.3, 4.0, 1.0)):
        body = {"params": {"x": x, "n": 4}, "metrics": {"t": t, "rate": rate}}
        api.ok("POST", "/studies/s/trials", body)
    analysis = api.ok("GET", "/studies/s/analysis")
    assert [best["numbers"] for best in analysis["best"]] == [[2], [1], [3]]
    # All numbers belong to one configuration: none has the time of 1.0 and the rate of 20.0.
    assert analysis["configuration"] == {"x": 0.2, "n": 4}
    assert [(o["metric"], o["best"], o["gain"]) for o in analysis["objectives"]] == [
        ("t", 3.0, -0.5),
        ("rate", 20.0, 1.0),
    ]


def names(api: Api, query: str) -> list[str]:
    return [item["name"] for item in api.ok("GET", f"/studies?{query}")["studies"]]


def test_the_list_is_sorted_and_paged_in_any_order(api: Api, study: Create) -> None:
    for name, seconds in (("a", 4.0), ("b", None), ("c", 1.0), ("d", 4.0)):
        study(name)
        if seconds is not None:
            api.ok("POST", f"/studies/{name}/trials", {"params": {"x": 0.5, "n": 4}, "metrics": {"seconds": seconds}})
    summarise_all()
    # What has no value comes last both ways; of equals the newest is first.
    assert names(api, "sort=best") == ["c", "d", "a", "b"]
    assert names(api, "sort=-best") == ["d", "a", "c", "b"]
    assert names(api, "sort=name") == ["a", "b", "c", "d"]
    for sort in ("best", "-best", "-name", "trials", "-trials", "updated", "-created", "created", "gain"):
        paged, token = [], ""
        while True:
            page = api.ok("GET", f"/studies?sort={sort}&page_size=1&page_token={token}")
            paged += [item["name"] for item in page["studies"]]
            token = page["next_page_token"]
            if not token:
                break
        assert paged == names(api, f"sort={sort}"), sort
    assert api.refused(400, "invalid_argument", "GET", "/studies?sort=beauty")["data"]["field"] == "sort"
    # Of [1, 2] neither is a time.
    for token in ("e30", "!", "WzEsIDJd", "W251bGwsIDFd"):
        problem = api.refused(400, "invalid_argument", "GET", f"/studies?sort=created&page_token={token}")
        assert problem["data"]["field"] == "page_token"


def test_the_list_is_searched_and_filtered_by_tags_and_owner(api: Api, study: Create) -> None:
    body = {"name": "mail-1", "spec": SPEC, "tags": ["night", "gcc 13", "night"]}
    assert api.ok("POST", "/studies", body)["tags"] == ["gcc 13", "night"]
    study("web-1")
    assert names(api, "search=MAIL") == names(api, "search=night") == names(api, "tag=night&tag=gcc 13") == ["mail-1"]
    assert names(api, "tag=night&tag=day") == names(api, "search=nigh") == []
    owner = api.ok("GET", "/studies/web-1")["owner"]
    assert names(api, f"owner={owner}") == ["web-1", "mail-1"]
    assert api.ok("PATCH", "/studies/web-1", {"tags": ["night"]})["tags"] == ["night"]
    facets = api.ok("GET", "/study-facets")
    assert facets["tags"] == [{"value": "gcc 13", "count": 1}, {"value": "night", "count": 2}]
    assert facets["owners"] == [{"value": owner, "count": 2}]
    assert facets["states"] == [{"value": "ACTIVE", "count": 2}]
    for tags in (["-" * 51], ["x;y"], [""], ["a,b"], [str(n) for n in range(21)]):
        api.refused(400, "invalid_argument", "PATCH", "/studies/web-1", {"tags": tags})
    api.refused(400, "invalid_argument", "PATCH", "/studies/web-1", {})
    api.refused(400, "invalid_argument", "PATCH", "/studies/web-1", {"tags": [], "state": "PAUSED"})


def test_paused_studies_and_studies_without_agents_need_attention(api: Api, study: Create) -> None:
    study("asked")
    study("nobody-has-it", execution={"component": "gcc-flags"})
    study("paused")
    api.ok("PATCH", "/studies/paused", {"state": "PAUSED", "reason": "Ten failures in a row."})
    waiting.tell()
    assert api.ok("GET", "/studies/nobody-has-it/queue") == {
        "reason": "Waits for an agent: none is online.",
        "reason_data": {"code": "no_agent_online", "values": {}},
        "place": None,
    }
    assert names(api, "attention=true&sort=name") == ["nobody-has-it", "paused"]
    assert api.ok("GET", "/study-facets")["attention"] == 2


def test_a_page_of_studies_costs_the_same_however_many_there_are(api: Api, study: Create) -> None:
    for index in range(3):
        study(f"s{index}")
    summarise_all()

    def cost(path: str, studies: int) -> int:
        """Return the least of several requests, since one of them may write the usage of the minute."""
        counts = []
        for _ in range(3):
            with CaptureQueriesContext(connection) as queries:
                assert len(api.ok("GET", path)["studies"]) == studies
            counts.append(len(queries))
        return min(counts)

    assert cost("/studies?sort=gain&page_size=1", 1) == cost("/studies?sort=gain", 3)


def test_studies_are_compared_by_an_objective_that_they_share(api: Api, study: Create) -> None:
    study("a")
    study("b", objectives=[{"metric": "rate", "goal": "maximize"}, {"metric": "seconds", "goal": "minimize"}])
    for seconds in (3.0, 4.0, 1.0):
        api.ok("POST", "/studies/a/trials", {"params": {"x": 0.1, "n": 4}, "metrics": {"seconds": seconds}})
    api.ok("POST", "/studies/b/trials", {"params": {"x": 0.1, "n": 4}, "metrics": {"seconds": 2.0, "rate": 9.0}})
    found = api.ok("GET", "/comparison?study=a&study=b")
    assert (found["metric"], found["goal"], found["metrics"]) == ("seconds", "minimize", ["seconds"])
    assert [(curve["study"], curve["numbers"], curve["values"]) for curve in found["curves"]] == [
        ("a", [1, 3], [3.0, 1.0]),
        ("b", [1], [2.0]),
    ]
    assert found["curves"][0]["last_number"] == found["curves"][0]["trials"] == 3
    assert found["curves"][0]["objective"] is None
    summarise_all()
    result = api.ok("GET", "/comparison?study=a&study=b")["curves"][0]["objective"]
    assert (result["best"], result["runs"], result["level"]) == (3.0, 3, "not yet known"), "not the luckiest run"
    assert api.ok("GET", "/comparison?study=b")["metrics"] == ["rate", "seconds"]
    api.refused(400, "invalid_argument", "GET", "/comparison?study=a&study=b&metric=rate")
    api.refused(400, "invalid_argument", "GET", "/comparison?study=a&study=a")
    study("c", objectives=[{"metric": "watts", "goal": "minimize"}])
    api.refused(400, "nothing_in_common", "GET", "/comparison?study=a&study=c")
    # What is not there, or was deleted, hides nothing of the others.
    found = api.ok("GET", "/comparison?study=never&study=a&study=c2&study=b")
    assert ([curve["study"] for curve in found["curves"]], found["missing"]) == (["a", "b"], ["never", "c2"])
    assert api.ok("GET", "/comparison?study=a")["missing"] == []
    refused = api.refused(400, "nothing_in_common", "GET", "/comparison?study=never&study=a&study=c")
    assert refused["data"]["missing"] == ["never"]
    api.refused(404, "study_not_found", "GET", "/comparison?study=never&study=c2")


def test_a_comparison_says_what_differs_and_which_study_is_better(api: Api, study: Create) -> None:
    study("a")
    study("b", algorithm={"name": "ga"})
    study("few")
    for shift in range(8):
        for name, x, seconds in (("a", 0.1, 2.0), ("b", 0.2, 1.0)):
            body = {"params": {"x": x, "n": 4}, "metrics": {"seconds": seconds + shift / 100}}
            api.ok("POST", f"/studies/{name}/trials", body)
    api.ok("POST", "/studies/few/trials", {"params": {"x": 0.3, "n": 4}, "metrics": {"seconds": 0.5}})
    found = api.ok("GET", "/comparison?study=a&study=b&study=few")
    assert [curve["configuration"]["x"] for curve in found["curves"]] == [0.1, 0.2, 0.3]
    settings = {setting["name"]: setting["values"] for setting in found["settings"]}
    assert settings["algorithm.name"] == ["random", "ga", "random"]
    assert not any(name.startswith("space.") for name in settings), "the spaces are equal"
    better, few = found["better"]
    assert (better["study"], better["against"], better["answer"]) == ("b", "a", "better")
    assert better["low"] < 0.5 < better["high"] + 0.01
    assert (better["runs"], better["against_runs"]) == (8, 8)
    assert not better["fair"], "these runs have chosen the configurations"
    assert (few["answer"], few["gain"], few["runs"]) == ("not yet known", None, 1)
    (worse,) = api.ok("GET", "/comparison?study=b&study=a")["better"]
    assert (worse["study"], worse["answer"]) == ("a", "worse")


def measured(api: Api, name: str, *values: float) -> str:
    """A study whose best configurations have these x."""
    api.ok("POST", "/studies", {"name": name, "spec": SPEC})
    for rank, x in enumerate(values):
        body = {"params": {"x": x, "n": 4}, "metrics": {"seconds": 1.0 + rank}}
        api.ok("POST", f"/studies/{name}/trials", body)
    return name


def test_a_study_starts_from_earlier_ones_as_its_plan_says(api: Api) -> None:
    measured(api, "one", 0.1, 0.9)
    measured(api, "two", 0.2)
    space = {"parameters": [{**SPEC["space"]["parameters"][0], "max": 0.6}, SPEC["space"]["parameters"][1]]}
    spec = {**SPEC, "space": space, "start_from": ["one", "two"]}
    reported = [{"study": "one", "taken": 1, "passed_over": 1}, {"study": "two", "taken": 1, "passed_over": 0}]
    planned = api.ok("POST", "/plans", {"spec": spec})
    assert (planned["started_from"], planned["spec"]["start_from"]) == (reported, ["one", "two"])
    body = {"name": "s", "spec": spec, "request_id": "r"}
    created = api.ok("POST", "/studies", body)
    assert (created["started_from"], created["spec"]["start_from"]) == (reported, ["one", "two"])
    assert (created["trial_count"], created["requested_count"]) == (3, 3)
    # Sent twice it is created once, also when what it started from is gone.
    api.ok("DELETE", "/studies/one")
    assert api.ok("POST", "/studies", body) == created == api.ok("GET", "/studies/s")
    trials = api.ok("GET", "/studies/s/trials")["trials"]
    assert [(trial["origin"], trial["params"]["x"]) for trial in trials] == [
        ("default", 0.5), ("earlier", 0.1), ("earlier", 0.2),
    ]  # fmt: skip
    assert [trial["params"] for trial in trials] == planned["first"]
    exported = api.client.get("/api/v1/studies/s/trials.csv").getvalue()
    assert exported.count(b",earlier,") == 2
    entries = api.ok("GET", "/audit?target=study/s")["entries"]
    assert [entry["detail"] for entry in entries if entry["action"] == "study.create"] == [{"started_from": reported}]


def test_a_study_that_starts_from_none_says_so(api: Api) -> None:
    created = api.ok("POST", "/studies", {"name": "s", "spec": {**SPEC, "start_from": []}})
    assert (created["started_from"], created["trial_count"]) == ([], 0)
    assert "start_from" not in created["spec"]


@pytest.mark.parametrize("path", ["/studies", "/plans", "/dry-runs"])
def test_unusable_studies_to_start_from_are_refused_by_each_call(api: Api, path: str) -> None:
    measured(api, "plain", 0.1)
    create_study(make_principal(), "theirs", make_spec())
    execution = {"component": "gcc-flags", "application": "small"}
    wrong = [("theirs", "study_not_found"), ("nowhere", "study_not_found"), ("plain", "other_component")]
    for name, code in wrong:
        spec = {**SPEC, "execution": execution, "start_from": [name]}
        body = {"name": "s", "spec": spec}
        problem = api.refused(400, code, "POST", path, {"spec": spec} if path == "/plans" else body)
        assert (problem["data"]["field"], problem["data"]["value"]) == ("start_from[0]", name)
        assert problem["data"]["allowed"]
    assert api.ok("GET", "/studies")["total_count"] == 1


def test_equal_results_of_all_configurations_ask_whether_a_value_arrives(api: Api, study: Create) -> None:
    two = [{"metric": "seconds", "goal": "minimize"}, {"metric": "watts", "goal": "minimize"}]
    study("same")
    study("two", objectives=two)
    for name, metrics in (("same", {"seconds": 2.0}), ("two", {"seconds": 2.0, "watts": 5.0})):
        for n in (4, 5, 6, 7):
            assert api.ok("GET", f"/studies/{name}/analysis")["advice"] == ""
            api.ok("POST", f"/studies/{name}/trials", {"params": {"x": 0.5, "n": n}, "metrics": metrics})
        found = api.ok("GET", f"/studies/{name}/analysis")
        assert found["advice"].startswith("All 4 configurations gave the same result, seconds 2")
        assert found["advice_data"] == {"code": "all_equal", "values": {"configurations": 4, "metrics": metrics}}
    assert api.ok("GET", "/studies/same/analysis")["verdict"]["advice"] != ""
