"""Matching over gRPC: match, report, and records that two processes see at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from service._gen import matching_pb2 as pb
from service._gen.agent_pb2_grpc import AgentServiceStub
from service._gen.matching_pb2_grpc import MatchingServiceStub
from service._gen.tuning_pb2_grpc import TuningServiceStub
from tests.factories.grpc_service import GrpcService, refusal, unique
from tests.factories.patience import PATIENCE, wait_for
from tests.factories.tuned import ARGV, job_like_it, tune


@pytest.fixture(scope="module")
def matching(grpc_service: GrpcService) -> MatchingServiceStub:
    return MatchingServiceStub(grpc_service.channel())


@pytest.fixture(scope="module")
def component() -> str:
    return unique("component")


@pytest.fixture(scope="module")
def study(tuning: TuningServiceStub, agents: AgentServiceStub, component: str) -> str:
    return tune(tuning, agents, component, user="ada", name="ant")


@pytest.fixture
def second(grpc_service: GrpcService) -> Iterator[MatchingServiceStub]:
    """Another process of the same service."""
    other = GrpcService(grpc_service.server_url, grpc_service.broker_url, grpc_service.database)
    other.start()
    yield MatchingServiceStub(other.channel())
    for channel in other.channels:
        channel.close()
    other.stop()


def match(stub: MatchingServiceStub, component: str, **changes: Any) -> list[pb.RecordMatch]:
    explain = changes.pop("explain", False)
    request = pb.MatchRequest(job=job_like_it(**changes), components=[component], explain=explain)
    return list(stub.Match(request, timeout=PATIENCE).matches)


def records(stub: MatchingServiceStub, **wanted: Any) -> list[pb.Record]:
    return list(stub.ListRecords(pb.ListRecordsRequest(**wanted), timeout=PATIENCE).records)


def change(stub: MatchingServiceStub, record: str, state: pb.RecordState.ValueType, reason: str = "") -> pb.Record:
    return stub.ChangeRecord(pb.ChangeRecordRequest(id=record, state=state, reason=reason), timeout=PATIENCE)


def report(record: str, decision: pb.Decision.ValueType, seconds: float, **changes: Any) -> pb.JobReport:
    now = Timestamp()
    now.FromDatetime(datetime.now(UTC))
    fields: dict[str, Any] = {
        "submission": uuid4().hex,
        "job": job_like_it(cluster="alpha", partition="long"),
        "considered": [pb.Considered(record=record, score=0.9, decision=decision)],
        "end": pb.JOB_END_COMPLETED,
        "seconds": seconds,
        "ended_at": now,
        **changes,
    }
    return pb.JobReport(**fields)


def test_a_job_matches_the_record_of_a_tuned_application(
    matching: MatchingServiceStub, component: str, study: str
) -> None:
    (found,) = match(matching, component)
    record = found.record
    assert (record.study, record.component, record.application) == (study, component, "small")
    assert record.params["x"].number > 0.5
    assert 0.1 < record.gain_low < record.gain < record.gain_high < 0.3
    assert (record.job.user, record.job.name, record.job.program) == ("ada", "ant", "ant")
    assert record.job.command_line == " ".join(ARGV)
    assert not record.HasField("feedback")
    assert found.accepted
    assert found.threshold <= found.score <= 1
    assert found.score == pytest.approx(sum(part.weight * part.similarity for part in found.parts))
    assert found.reason == f"The score {found.score:.3f} reaches the threshold 0.77."
    assert match(matching, component, user="eve", name="whale", program="sonar", command_line="/opt/x -a 1") == []
    (far,) = match(matching, component, user="eve", name="whale", program="sonar", command_line="/opt/x", explain=True)
    assert not far.accepted
    assert match(matching, unique("component")) == []


def test_other_processes_are_notified_of_a_changed_record(
    matching: MatchingServiceStub, second: MatchingServiceStub, component: str, study: str
) -> None:
    (record,) = records(matching, study=study)
    for stub in (matching, second):
        assert match(stub, component)
    # A process that has a connection for notifications reads the records again after a notification alone.
    for state, expected in ((pb.RECORD_STATE_WITHDRAWN, 0), (pb.RECORD_STATE_ACTIVE, 1)) * 3:
        change(matching, record.id, state)
        wait_for(lambda expected=expected: len(match(second, component)) == expected)  # type: ignore[misc]


def test_a_new_process_and_one_that_lost_its_connections_know_all_records(
    own_grpc_service: GrpcService, study: str
) -> None:
    service, component = own_grpc_service, unique("component")
    made = tune(service.tuning(), service.agents(), component, user="ada", name="ant")
    stub = MatchingServiceStub(service.channel())
    assert [found.record.study for found in match(stub, component)] == [made]
    service.stop()
    service.start()
    assert wait_for(lambda: _answered(stub, component)) == [made]
    service.cut_connections()
    (record,) = wait_for(lambda: _listed(stub, made))
    change(stub, record.id, pb.RECORD_STATE_WITHDRAWN)
    wait_for(lambda: match(stub, component) == [])


def _answered(stub: MatchingServiceStub, component: str) -> list[str]:
    try:
        return [found.record.study for found in match(stub, component)]
    except grpc.RpcError:
        return []


def _listed(stub: MatchingServiceStub, study: str) -> list[pb.Record]:
    try:
        return records(stub, study=study)
    except grpc.RpcError:
        return []


def test_slower_jobs_withdraw_a_record(
    matching: MatchingServiceStub, tuning: TuningServiceStub, agents: AgentServiceStub
) -> None:
    component = unique("component")
    study = tune(tuning, agents, component, user="ada", name="ant")
    (record,) = records(matching, study=study)
    assert match(matching, component)
    sent = [
        report(record.id, decision, seconds + n / 10, job=job_like_it(user=f"user-{n}"), confirmed=True)
        for decision, seconds in ((pb.DECISION_APPLIED, 12), (pb.DECISION_CONTROL, 10))
        for n in range(4)
    ]
    for _ in range(2):
        matching.ReportJobs(pb.ReportJobsRequest(jobs=sent), timeout=PATIENCE)
    (record,) = records(matching, study=study, state=pb.RECORD_STATE_WITHDRAWN)
    assert (record.feedback.applied_jobs, record.feedback.control_jobs) == (4, 4)
    assert 0 < record.feedback.change_low < record.feedback.change < record.feedback.change_high
    assert "longer than the controls" in record.state_reason
    wait_for(lambda: match(matching, component) == [])
    listed = matching.ListJobs(pb.ListJobsRequest(record=record.id, page_size=5), timeout=PATIENCE)
    rest = matching.ListJobs(pb.ListJobsRequest(record=record.id, page_token=listed.next_page_token), timeout=PATIENCE)
    assert (len(listed.jobs), len(rest.jobs), rest.next_page_token) == (5, 3, "")
    assert {job.submission for job in (*listed.jobs, *rest.jobs)} == {one.submission for one in sent}
    (job,) = [job for job in (*listed.jobs, *rest.jobs) if job.submission == sent[0].submission]
    expected = sent[0]
    expected.job.submitted_at.CopyFrom(job.job.submitted_at)
    assert job == expected


def test_requests_are_checked(matching: MatchingServiceStub, study: str) -> None:
    (record,) = records(matching, study=study)
    applied = report(record.id, pb.DECISION_APPLIED, 1.0)
    without_time = report(record.id, pb.DECISION_APPLIED, 1.0)
    without_time.ClearField("ended_at")
    undecided = report(record.id, pb.DECISION_UNSPECIFIED, 1.0)
    for call, request, field in (
        (matching.Match, pb.MatchRequest(job=pb.Job(nodes=-1)), "job.nodes"),
        (matching.Match, pb.MatchRequest(job=pb.Job(command_line="x" * 4097)), "job.command_line"),
        (matching.Match, pb.MatchRequest(job=pb.Job(submitted_at=Timestamp(seconds=2**60))), "job.submitted_at"),
        (matching.Match, pb.MatchRequest(components=["c"] * 33), "components"),
        (matching.ReportJobs, pb.ReportJobsRequest(jobs=[applied, without_time]), "jobs[1].ended_at"),
        (matching.ReportJobs, pb.ReportJobsRequest(jobs=[undecided]), "jobs[0].considered[0].decision"),
        (matching.ReportJobs, pb.ReportJobsRequest(jobs=[applied] * 501), "jobs"),
        (matching.ListRecords, pb.ListRecordsRequest(page_size=501), "page_size"),
        (matching.ChangeRecord, pb.ChangeRecordRequest(id=record.id), "state"),
        (matching.UpdateSettings, pb.UpdateSettingsRequest(settings=pb.Settings(threshold=2)), "threshold"),
    ):
        assert refusal(call, request).data["field"] == field
    missing = refusal(matching.ChangeRecord, pb.ChangeRecordRequest(id="0", state=pb.RECORD_STATE_ACTIVE))
    assert (missing.status, missing.code) == (grpc.StatusCode.NOT_FOUND, "record_not_found")
    # Nothing of a refused batch is stored.
    assert list(matching.ListJobs(pb.ListJobsRequest(record=record.id)).jobs) == []


def test_settings_come_back(matching: MatchingServiceStub) -> None:
    cluster = unique("cluster")
    usual = matching.GetSettings(pb.GetSettingsRequest(cluster=cluster))
    assert (usual.threshold, usual.night_from, usual.night_until) == (0.77, 22, 6)
    assert sum(usual.weights.values()) == pytest.approx(1)
    wanted = pb.Settings(threshold=0.9, weights={"user": 2.0}, night_from=20, night_until=7)
    changed = matching.UpdateSettings(pb.UpdateSettingsRequest(cluster=cluster, settings=wanted))
    assert (changed.weights["user"], changed.weights["name"], changed.threshold) == (2.0, 0.0, 0.9)
    assert matching.GetSettings(pb.GetSettingsRequest(cluster=cluster)) == changed
    assert matching.GetSettings(pb.GetSettingsRequest()) == usual
