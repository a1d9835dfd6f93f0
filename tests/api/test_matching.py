"""Application matching over REST."""

from __future__ import annotations

from typing import Any

import pytest

from service.identity.principals import administrator
from service.matching import jobs
from service.matching.models import Record
from service.tenancy.principal import Principal
from tests.api.conftest import Api
from tests.factories.matching import make_job, make_record, make_report

JOB = {
    "user": "ada",
    "name": "angry_ant_2",
    "program": "ant",
    "command_line": "/home/ada/bin/ant --grid 64 --steps=100",
    "nodes": 2,
    "cluster_nodes": 8,
}
SETTINGS = {"threshold": 0.9, "weights": {"user": 1, "nodes": 3}, "night_from": 20, "night_until": 7}


@pytest.fixture
def principal(api: Api) -> Principal:
    return administrator()


@pytest.fixture
def record(principal: Principal) -> Record:
    return make_record(principal)


def test_records_are_listed_and_shown_with_their_feedback(api: Api, principal: Principal, record: Record) -> None:
    other = make_record(principal, component="mpi", study_name="other")
    sent = [make_report(record, "APPLIED", 8.0 + n / 10) for n in range(3)]
    sent += [make_report(record, "CONTROL", 10.0 + n / 10) for n in range(3)]
    jobs.report(principal, sent)
    answer = api.ok("GET", "/matching/records")
    assert [one["id"] for one in answer["records"]] == [str(other.pk), str(record.pk)]
    shown = answer["records"][1]
    assert shown == api.ok("GET", f"/matching/records/{record.pk}")
    assert (shown["study"], shown["component"], shown["params"]) == ("ant-1", "compiler", {"x": 0.25, "n": 4})
    assert (shown["state"], shown["cause"], shown["job"]["command_line"]) == ("ACTIVE", "", JOB["command_line"])
    fared = shown["feedback"]
    assert (fared["applied"], fared["control"]) == (3, 3)
    assert fared["low"] < fared["change"] < fared["high"] < 0
    assert answer["records"][0]["feedback"] == {
        "applied": 0, "control": 0, "change": None, "low": None, "high": None, "users": 0, "unconfirmed": 0,
    }  # fmt: skip
    for query, expected in (("component=mpi", other), ("study=ant-1", record), ("state=WITHDRAWN", None)):
        found = api.ok("GET", f"/matching/records?{query}")["records"]
        assert [one["id"] for one in found] == ([] if expected is None else [str(expected.pk)])
    found = api.ok("GET", "/matching/records?search=OTHER&sort=gain")["records"]
    assert [one["id"] for one in found] == [str(other.pk)]
    assert api.refused(400, "invalid_argument", "GET", "/matching/records?sort=age")["data"]["field"] == "sort"
    first = api.ok("GET", "/matching/records?page_size=1")
    second = api.ok("GET", f"/matching/records?page_size=1&page_token={first['next_page_token']}")
    assert [second["records"][0]["id"], second["next_page_token"]] == [str(record.pk), ""]


def test_a_record_is_withdrawn_and_restored(api: Api, record: Record) -> None:
    path = f"/matching/records/{record.pk}"
    changed = api.ok("PATCH", path, {"state": "WITHDRAWN", "reason": "It is old."})
    assert (changed["state"], changed["cause"], changed["state_reason"]) == ("WITHDRAWN", "person", "It is old.")
    assert changed["created_at"] < changed["withdrawn_at"]
    assert api.ok("POST", "/matching/match", {"job": JOB}) == {"matches": []}
    restored = api.ok("PATCH", path, {"state": "ACTIVE"})
    assert (restored["state_reason"], restored["withdrawn_at"]) == ("administrator has restored it.", None)
    assert restored["active_since"] > changed["withdrawn_at"]
    [withdrawal, restoration] = reversed(api.ok("GET", f"/audit?target=record/{record.pk}")["entries"])
    assert (withdrawal["action"], restoration["action"]) == ("record.withdraw", "record.restore")
    assert restoration["before"]["record"]["state"] == "WITHDRAWN"
    api.refused(404, "record_not_found", "PATCH", "/matching/records/0", {"state": "ACTIVE"})
    api.refused(404, "record_not_found", "GET", "/matching/records/x")
    for body, field in (
        ({"state": "GONE"}, "state"),
        ({"state": "ACTIVE", "reason": "x" * 501}, "reason"),
        ({}, "state"),
    ):
        assert api.refused(400, "invalid_argument", "PATCH", path, body)["data"]["field"] == field


def test_a_match_explains_its_score(api: Api, record: Record) -> None:
    (match,) = api.ok("POST", "/matching/match", {"job": JOB})["matches"]
    assert (match["record"]["id"], match["accepted"], match["threshold"]) == (str(record.pk), True, 0.77)
    assert match["score"] == pytest.approx(sum(part["weight"] * part["similarity"] for part in match["parts"]))
    assert {part["field"]: part["similarity"] for part in match["parts"]}["user"] == 1
    assert match["record"]["feedback"] is None
    (far,) = api.ok("POST", "/matching/match", {"job": {"user": "eve"}, "components": ["compiler"]})["matches"]
    assert not far["accepted"]
    assert "is below the threshold" in far["reason"]
    for body, field in (
        ({}, "job"),
        ({"job": {**JOB, "nodes": 0}}, "job.nodes"),
        ({"job": {**JOB, "queue": "long"}}, "job.queue"),
        ({"job": {**JOB, "command_line": "x" * 4097}}, "job.command_line"),
        ({"job": {**JOB, "user": "a\0b"}}, "job.user"),
        ({"job": JOB, "components": ["c"] * 33}, "components"),
    ):
        problem = api.refused(400, "invalid_argument", "POST", "/matching/match", body)
        assert problem["data"]["field"] == field


def test_reported_jobs_are_listed(api: Api, principal: Principal, record: Record) -> None:
    jobs.report(principal, [make_report(record, "CONTROL", 3.5, job_id="12"), make_report(None, job_id="13")])
    found = api.ok("GET", "/matching/jobs")["jobs"]
    assert [one["job_id"] for one in found] == ["13", "12"]
    (shown,) = api.ok("GET", f"/matching/jobs?record={record.pk}")["jobs"]
    assert (shown["seconds"], shown["end"], shown["cluster"], shown["job"]["nodes"]) == (3.5, "COMPLETED", "alpha", 2)
    assert shown["considered"] == [{"record": str(record.pk), "score": 0.9, "decision": "CONTROL", "reason": ""}]
    for query, count in (("decision=CONTROL", 1), ("decision=APPLIED", 0), (f"record={record.pk}&decision=CONTROL", 1)):
        assert len(api.ok("GET", f"/matching/jobs?{query}")["jobs"]) == count
    assert api.refused(400, "invalid_argument", "GET", "/matching/jobs?decision=NO")["data"]["field"] == "decision"
    assert api.refused(400, "invalid_argument", "GET", "/matching/jobs?page_size=501")["data"]["field"] == "page_size"


def test_settings_are_read_and_replaced(api: Api, record: Record) -> None:
    assert api.ok("GET", "/matching/settings")["threshold"] == 0.77
    assert sum(api.ok("GET", "/matching/settings")["weights"].values()) == pytest.approx(1)
    changed = api.ok("PUT", "/matching/settings", {"cluster": "alpha", **SETTINGS})
    assert (changed["weights"]["nodes"], changed["weights"]["path"], changed["night_from"]) == (3, 0, 20)
    assert api.ok("GET", "/matching/settings?cluster=alpha") == changed
    assert (changed["is_own"], changed["clusters"]) == (True, ["alpha"])
    other = api.ok("GET", "/matching/settings?cluster=beta")
    assert (other["is_own"], other["clusters"]) == (False, ["alpha"])
    assert (other["usual_threshold"], other["usual_weights"]) == (other["threshold"], other["weights"])
    assert api.ok("GET", "/matching/settings")["threshold"] == 0.77
    job: dict[str, Any] = {**JOB, "cluster": "alpha", "name": "whale", "program": "sonar", "command_line": "/x"}
    (match,) = api.ok("POST", "/matching/match", {"job": job})["matches"]
    assert (match["score"], match["threshold"]) == (1.0, 0.9)
    for change, field in (
        ({"threshold": 2}, "threshold"),
        ({"weights": {"colour": 1}}, "weights.colour"),
        ({"weights": {"user": "much"}}, "weights.user"),
        ({"night_until": 24}, "night_until"),
        ({"nights": 1}, "nights"),
    ):
        problem = api.refused(400, "invalid_argument", "PUT", "/matching/settings", {**SETTINGS, **change})
        assert problem["data"]["field"] == field


def test_quality_counts_right_matches(api: Api, principal: Principal) -> None:
    for number in range(4):
        make_record(principal, job=make_job(name=f"ant_{number}"), application="ant")
        make_record(
            principal,
            job=make_job(user="bob", name=f"whale_{number}", program="sonar", command_line="/opt/sonar"),
            application="whale",
        )
    make_record(principal, component="mpi", application="alone", job=make_job(user="eve", program="x", nodes=8))
    make_record(principal, application="")
    found = api.ok("GET", "/matching/quality?cluster_nodes=8")
    assert (found["records"], found["related"], found["threshold"], found["learned"]) == (9, 8, 0.77, None)
    assert (found["pairs"], found["learnable"]) == (12, 2)
    by_threshold = {one["threshold"]: one for one in found["qualities"]}
    assert by_threshold[0.77] == {"threshold": 0.77, "precision": 1.0, "recall": 1.0}
    assert by_threshold[1.0]["recall"] == 0.0
    learned = api.ok("GET", "/matching/quality?cluster_nodes=8&learn=true&component=compiler")["learned"]
    assert sum(learned["weights"].values()) == pytest.approx(1)
    assert 0.5 <= learned["threshold"] <= 1
    assert len(learned["qualities"]) == len(by_threshold)
    alone = api.ok("GET", "/matching/quality?component=mpi&learn=true")
    assert (alone["records"], alone["related"], alone["learned"]) == (1, 0, None)
    api.refused(400, "invalid_argument", "GET", "/matching/quality?cluster_nodes=-1")


def test_the_quota_counts_records(api: Api, record: Record) -> None:
    found = api.ok("GET", "/quota")
    assert (found["used"]["matching_records"], found["limits"]["matching_records"]) == (1, 20_000)
