"""A study's trials as a table, as a sample for pictures, and as a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from service.core.lifecycle import TrialState
from service.studies import curves
from service.studies.models import Study, Trial
from service.tenancy.cursor import acting
from service.tenancy.models import Tenant
from tests.api.conftest import Api

Create = Callable[..., str]

MODE = {"name": "mode", "type": "categorical", "values": ["=b", "a"], "default": "a"}


@pytest.fixture
def table(api: Api, study: Create) -> str:
    """Five trials: 3 s, 1 s, 2 s, two that failed, one of them infeasible."""
    study(space={"parameters": [{"name": "x", "type": "float", "min": 0.0, "max": 100.0, "default": 0.5}, MODE]})
    for x, seconds in ((10.0, 3.0), (9.0, 1.0), (100.0, 2.0)):
        body = {"params": {"x": x, "mode": "=b"}, "metrics": {"seconds": seconds}}
        api.ok("POST", "/studies/s/trials", body)
    api.ok("POST", "/studies/s/suggestions", {"count": 2})
    api.ok("POST", "/studies/s/trials/4/fail", {"infeasible": True, "reason": "does not build"})
    api.ok("POST", "/studies/s/trials/5/fail", {"infeasible": False, "reason": "the node died"})
    return "s"


def numbers(api: Api, query: str) -> list[int]:
    return [trial["number"] for trial in api.ok("GET", f"/studies/s/table?{query}")["trials"]]


def test_rows_are_ordered_by_any_column_with_missing_values_last(api: Api, table: str) -> None:
    assert numbers(api, "order=metric:seconds") == [2, 3, 1, 4, 5]
    assert numbers(api, "order=metric:seconds&descending=true") == [1, 3, 2, 4, 5]
    # As numbers, not as text.
    assert numbers(api, "order=param:x&state=COMPLETED") == [2, 1, 3]
    assert numbers(api, "order=number&descending=true") == [5, 4, 3, 2, 1]
    assert numbers(api, "order=state")[0] == 1
    assert len(numbers(api, "order=duration")) == len(numbers(api, "order=agent")) == 5
    refusal = api.refused(400, "invalid_argument", "GET", "/studies/s/table?order=param:y")
    assert refusal["data"]["field"] == "order"


def test_rows_are_filtered_and_paged(api: Api, table: str) -> None:
    page = api.ok("GET", "/studies/s/table?order=metric:seconds&offset=1&page_size=2")
    assert ([trial["number"] for trial in page["trials"]], page["total_count"]) == ([3, 1], 5)
    assert numbers(api, "state=FAILED&state=INFEASIBLE") == [4, 5]
    assert numbers(api, "reason=the+node+died") == [5]
    # An empty reason can be selected too.
    api.ok("POST", "/studies/s/suggestions", {"count": 1})
    api.ok("POST", "/studies/s/trials/6/fail", {"infeasible": False})
    assert numbers(api, "state=FAILED") == [5, 6]
    assert numbers(api, "state=FAILED&reason=") == [6]
    api.refused(400, "invalid_argument", "GET", "/studies/s/table?offset=-1")


def test_rows_are_filtered_by_conditions_on_any_column(api: Api, table: str) -> None:
    def where(*conditions: str) -> list[int]:
        return numbers(api, urlencode([("where", one) for one in conditions]))

    # As numbers: 100 is more than 9.5, and 9 is not.
    assert where("param:x > 9.5", "metric:seconds > 0") == [1, 3]
    assert where("param:x>9.5", "metric:seconds <= 2") == [3]
    assert where("param:mode = =b", "number < 4") == [1, 2, 3]
    assert where("param:mode = =b' OR 1=1 --") == []
    assert where("number >= 4", "metric:seconds != 1") == [4, 5], "a trial without a value has another one"
    assert where("origin ~ UGGEST", "number > 4") == [5]
    assert where("duration < 0") == []
    for wrong in (
        "param:y > 1",
        "param:x",
        "param:x > many",
        "param:x ~ 1",
        "param:mode < b",
        "metric: > 1",
        "state > 1",
    ):
        refusal = api.refused(400, "invalid_argument", "GET", "/studies/s/table?" + urlencode({"where": wrong}))
        assert (refusal["data"]["field"], refusal["data"]["value"]) == ("where", wrong)


def test_failures_are_counted_by_their_reason(api: Api, table: str) -> None:
    api.ok("POST", "/studies/s/suggestions", {"count": 1})
    api.ok("POST", "/studies/s/trials/6/fail", {"infeasible": True, "reason": "does not build"})
    assert api.ok("GET", "/studies/s/failures")["failures"] == [
        {"state": "INFEASIBLE", "reason": "does not build", "reason_data": None, "count": 2, "first": 4, "last": 6},
        {"state": "FAILED", "reason": "the node died", "reason_data": None, "count": 1, "first": 5, "last": 5},
    ]


def test_the_csv_has_a_column_for_each_metric_and_parameter_and_runs_nothing(api: Api, table: str) -> None:
    answer = api.client.get("/api/v1/studies/s/trials.csv")
    assert answer["Content-Type"].startswith("text/csv")
    assert 'filename="s.csv"' in answer["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["number"] for row in rows] == ["1", "2", "3", "4", "5"]
    assert (rows[0]["metric:seconds"], rows[0]["param:x"], rows[0]["param:mode"]) == ("3.0", "10.0", "'=b")
    assert (rows[3]["metric:seconds"], rows[3]["reason"]) == ("", "does not build")
    assert api("GET", "/studies/never/trials.csv")[0] == 404


def test_the_interference_and_the_round_of_a_trial_are_shown_and_exported(api: Api, table: str) -> None:
    measured = {"share": 0.48, "wait": 0.12, "swapped": 3, "unaffected": ["seconds"]}
    with acting(Tenant._default_manager.get(slug="default").pk):
        Trial._default_manager.filter(number=2).update(interference=measured, round=4)
    shown = api.ok("GET", "/studies/s/trials/2")
    assert (shown["interference"], shown["round"]) == (measured, 4)
    other = api.ok("GET", "/studies/s/trials/1")
    assert (other["interference"], other["round"]) == (None, None)
    written = api.client.get("/api/v1/studies/s/trials.csv").content.decode()
    first, second, *_ = csv.DictReader(io.StringIO(written))
    assert (second["share"], second["wait"], second["round"]) == ("0.48", "0.12", "4")
    assert (first["share"], first["wait"], first["round"]) == ("", "", "")


def test_the_json_has_the_spec_and_all_trials(api: Api, table: str) -> None:
    taken = api.ok("GET", "/studies/s/trials.json")
    assert taken["study"] == api.ok("GET", "/studies/s")
    assert taken["verdict"] == api.ok("GET", "/studies/s/analysis")["verdict"]
    assert taken["trials"] == api.ok("GET", "/studies/s/trials")["trials"]


def test_a_sample_has_the_shape_of_all_trials_and_every_best_so_far(api: Api, study: Create) -> None:
    study()
    # One trial of twenty is slow, in a rhythm that a sample of every tenth trial would follow.
    values = [100.0 if number % 20 == 0 else 10.0 + number % 7 for number in range(1, 5001)]
    values[1233], values[1243] = 1.0, 0.5
    tenant = Tenant._default_manager.get(slug="default")
    with acting(tenant.pk):
        row = Study._default_manager.get(name="s")
        Trial._default_manager.bulk_create(
            [
                Trial(
                    tenant=tenant,
                    study=row,
                    number=number,
                    state=TrialState.FAILED if number == 2222 else TrialState.COMPLETED,
                    params={"x": 0.5, "n": 4},
                    key="k",
                    metrics=None if number == 2222 else {"seconds": value},
                    breaks=["seconds >= 1"] if value < 1 else None,
                    origin="suggested",
                    revision=1,
                )
                for number, value in enumerate(values, start=1)
            ],
            batch_size=1000,
        )
        row.next_number = 5001
        row.save()
    trials = api.ok("GET", "/studies/s/sample?most=500")["trials"]
    found = [trial["number"] for trial in trials]
    assert found == sorted(found)
    assert {1, 7, 1234} <= set(found), "each trial that was the best so far"
    assert 1244 not in found, "the one that breaks a constraint was never the best"
    assert 500 <= len(found) <= 510
    # Every part of the study has its share, and so has each kind of result.
    assert all(45 <= sum(begin < number <= begin + 500 for number in found) <= 55 for begin in range(0, 5000, 500))
    slow = sum(trial["metrics"]["seconds"] == 100.0 for trial in trials if trial["metrics"])
    assert 0.02 < slow / len(found) < 0.09, "the truth is 0.05"
    assert [trial["number"] for trial in api.ok("GET", "/studies/s/sample?most=500")["trials"]] == found
    # Small enough a stretch comes whole.
    near = api.ok("GET", "/studies/s/sample?most=400&first=1000&last=1399")["trials"]
    assert [trial["number"] for trial in near] == list(range(1000, 1400))
    assert api.refused(400, "invalid_argument", "GET", "/studies/s/sample?most=1")["data"]["field"] == "most"


@pytest.fixture
def studies(api: Api, study: Create) -> None:
    """Three studies of scripts, of which one has the trials of the table."""
    study("slow", algorithm={"name": "sobol"})
    study("fast", algorithm={"name": "sobol"})
    study("other", algorithm={"name": "random"})
    for seconds in (3.0, 1.0):
        api.ok("POST", "/studies/fast/trials", {"params": {"x": 0.5, "n": 2}, "metrics": {"seconds": seconds}})


def test_lists_of_studies_are_filtered_by_conditions(api: Api, studies: None) -> None:
    def where(*conditions: str) -> list[str]:
        query = urlencode([("where", one) for one in conditions])
        answer = api.ok("GET", f"/studies?sort=name&{query}")
        assert answer["total_count"] == len(answer["studies"])
        return [one["name"] for one in answer["studies"]]

    assert where("trials > 1") == ["fast"]
    assert where("trials=0", "name ~ LO") == ["slow"]
    assert where("state = active") == ["fast", "other", "slow"]
    assert where("algorithm = random") == ["other"]
    assert where("gain > 0") == []
    assert where("gain != 0") == ["fast", "other", "slow"], "a study without a gain has another one"
    assert where("created > 2020-01-31", "created < 9000-01-01T12:00+01:00") == ["fast", "other", "slow"]
    for wrong in ("created > yesterday", "name > a", "trials ~ 1", "trials > many", "nothing = 1", "fast ones"):
        refusal = api.refused(400, "invalid_argument", "GET", "/studies?" + urlencode({"where": wrong}))
        assert (refusal["data"]["field"], refusal["data"]["value"]) == ("where", wrong)


def test_the_audit_trail_is_filtered_by_conditions(api: Api, studies: None) -> None:
    def targets(*conditions: str) -> set[str]:
        query = urlencode([("where", one) for one in conditions])
        return {entry["target"] for entry in api.ok("GET", f"/audit?{query}")["entries"]}

    assert targets("action = study.create", "target != study/slow") == {"study/fast", "study/other"}
    assert targets("target ~ FAST", "action = study.create") == {"study/fast"}
    assert targets("time < 2020-01-31") == set()
    api.refused(400, "invalid_argument", "GET", "/audit?where=detail+%3D+1")
    api.refused(400, "invalid_argument", "GET", "/audit/export?where=detail+%3D+1")


def test_records_and_jobs_take_conditions(api: Api) -> None:
    assert api.ok("GET", "/matching/records?where=gain+%3E+10&where=state+%3D+active")["records"] == []
    assert api.ok("GET", "/matching/jobs?where=seconds+%3E+10&where=end+%21%3D+failed")["jobs"] == []
    assert "nodes" in api.refused(400, "invalid_argument", "GET", "/matching/records?where=node+%3E+1")["detail"]
    api.refused(400, "invalid_argument", "GET", "/matching/jobs?where=end+%3E+2")


def test_learning_curves_are_thinned_and_sampled_but_named_trials_stay(
    api: Api, study: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    study()
    for trial in api.ok("POST", "/studies/s/suggestions", {"count": 4})["trials"]:
        number = trial["number"]
        for step in range(number - 1) if number < 4 else range(200):
            body = {"step": 10 * step, "metrics": {"seconds": 1 / (1 + step), "loss": float(step)}}
            api.ok("POST", f"/studies/s/trials/{number}/measurements", body)
    found = api.ok("GET", "/studies/s/curves")
    assert (found["metric"], found["total"]) == ("seconds", 3)
    # The first trial has no measurement. The others have the first and the last of theirs, at most 60 of them.
    assert [one["trial"] for one in found["curves"]] == [2, 3, 4]
    assert found["curves"][1] == {"trial": 3, "state": "ACTIVE", "steps": [0, 10], "values": [1.0, 0.5]}
    longest = found["curves"][2]["steps"]
    assert (len(longest), longest[0], longest[-1]) == (60, 0, 1990)
    assert api.ok("GET", "/studies/s/curves?metric=loss")["curves"][1]["values"] == [0.0, 1.0]
    assert api.ok("GET", "/studies/s/curves?metric=other")["curves"] == []
    monkeypatch.setattr(curves, "MOST_CURVES", 1)
    for number in (2, 3, 4):
        (one,) = api.ok("GET", f"/studies/s/curves?trial={number}")["curves"]
        assert one["trial"] == number
    many = "&".join("trial=1" for _ in range(21))
    api.refused(400, "invalid_argument", "GET", f"/studies/s/curves?{many}")
