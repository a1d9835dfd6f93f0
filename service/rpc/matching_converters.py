"""Translate the messages of matching to plain Python and back. The code that uses a value checks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from service._gen import matching_pb2
from service.core.errors import InvalidInput
from service.core.reasons import Reason
from service.live.job_choice import Place, Question
from service.matching import settings
from service.matching.book import Match
from service.matching.feedback import Feedback
from service.matching.jobs import Considered, KeptJob, Report
from service.matching.linkage.job import Job
from service.matching.models import Record
from service.matching.models.metadata import JobColumns
from service.matching.settings import Settings
from service.matching.submission import Submission
from service.rpc.converters import set_time
from service.rpc.values import set_values


def _names(enumeration: Mapping[str, int], prefix: str) -> dict[int, str]:
    return {number: name.removeprefix(prefix) for name, number in enumeration.items() if number != 0}


STATES = _names(dict(matching_pb2.RecordState.items()), "RECORD_STATE_")
ENDS = _names(dict(matching_pb2.JobEnd.items()), "JOB_END_")
DECISIONS = _names(dict(matching_pb2.Decision.items()), "DECISION_")


def submission_of(field: str, message: matching_pb2.Job) -> Submission:
    """Return a job. By default its time is now, and its number of nodes is 1. Raises InvalidInput."""
    job = Job(
        user=message.user,
        name=message.name,
        program=message.program,
        command_line=message.command_line,
        submitted_at=_time(f"{field}.submitted_at", message, "submitted_at") or datetime.now(UTC),
        nodes=message.nodes or 1,
    )
    return Submission(job, message.cluster, message.cluster_nodes, message.partition)


def report_of(field: str, message: matching_pb2.JobReport) -> Report:
    """Return a report on a job. Raises InvalidInput."""
    ended_at = _time(f"{field}.ended_at", message, "ended_at")
    if ended_at is None:
        raise InvalidInput(f"{field}.ended_at", None, "a time")
    return Report(
        submission=message.submission,
        submitted=submission_of(f"{field}.job", message.job),
        end=ENDS.get(message.end, ""),
        seconds=message.seconds,
        ended_at=ended_at,
        job_id=message.job_id,
        confirmed=message.confirmed,
        considered=[
            Considered(one.record, one.score, DECISIONS.get(one.decision, ""), one.reason) for one in message.considered
        ],
    )


def question_of(message: matching_pb2.ExploreRequest) -> Question:
    """Return the question about a job's place in a pair. Raises InvalidInput."""
    return Question(
        record=message.record,
        submission=message.submission,
        submitted=submission_of("job", message.job),
        begin=message.begin,
        share=message.share,
        limit=message.limit_seconds,
    )


def place_message(place: Place) -> matching_pb2.ExploreResponse:
    """Return a job's place in a pair as a message."""
    message = matching_pb2.ExploreResponse(
        study=place.study,
        trial=place.trial,
        candidate=place.candidate,
        waits=place.waits,
        reason=place.reason,
        reason_code=place.reason.code if isinstance(place.reason, Reason) else "",
    )
    if place.candidate:
        set_values(message.params, place.params)
    return message


def state_of(number: int, *, required: bool) -> str:
    """Return the name of a record's state, empty for an unspecified one. Raises InvalidInput."""
    if number not in STATES and (number != 0 or required):
        raise InvalidInput("state", number, ", ".join(STATES.values()))
    return STATES.get(number, "")


def settings_of(message: matching_pb2.Settings) -> Settings:
    """Return checked settings. Raises InvalidInput."""
    return settings.parse(message.threshold, dict(message.weights), message.night_from, message.night_until)


def settings_message(found: Settings) -> matching_pb2.Settings:
    """Return settings as a message."""
    begin, end = found.night
    return matching_pb2.Settings(
        threshold=found.threshold, weights=asdict(found.weights), night_from=begin, night_until=end
    )


def record_message(record: Record, feedback: Feedback | None = None) -> matching_pb2.Record:
    """Return a record as a message, with the feedback on it where that is known."""
    message = matching_pb2.Record(
        id=str(record.pk),
        component=record.component,
        digest=record.digest,
        application=record.application,
        study=record.study_name,
        gain=record.gain,
        gain_low=record.gain_low,
        gain_high=record.gain_high,
        state=matching_pb2.RecordState.Value(f"RECORD_STATE_{record.state}"),
        state_reason=record.state_reason,
        cause=record.cause,
        conditions=[one["text"] for one in record.conditions],
        audience=matching_pb2.Audience.Value(f"AUDIENCE_{record.audience.upper()}"),
    )
    _set_job(message.job, record)
    set_values(message.params, record.settings)
    set_time(message.created_at, record.created_at)
    if feedback is not None:
        message.feedback.applied_jobs, message.feedback.control_jobs = feedback.applied, feedback.control
        message.feedback.unconfirmed_jobs = feedback.unconfirmed
        for name, value in (("change", feedback.change), ("change_low", feedback.low), ("change_high", feedback.high)):
            if value is not None:
                setattr(message.feedback, name, value)
    return message


def match_message(match: Match) -> matching_pb2.RecordMatch:
    """Return the nearest record of a component as a message."""
    return matching_pb2.RecordMatch(
        record=record_message(match.record),
        score=match.score,
        threshold=match.threshold,
        accepted=match.is_accepted,
        parts=[
            matching_pb2.Part(field=part.field, weight=part.weight, similarity=part.similarity) for part in match.parts
        ],
        reason=match.reason,
    )


def job_message(kept: KeptJob) -> matching_pb2.JobReport:
    """Return a reported job as a message."""
    row = kept.row
    message = matching_pb2.JobReport(
        submission=row.submission,
        job_id=row.job_id,
        end=matching_pb2.JobEnd.Value(f"JOB_END_{row.end}"),
        seconds=row.seconds,
        confirmed=row.confirmed,
        considered=[
            matching_pb2.Considered(
                record=str(one.record_id),
                score=one.score,
                decision=matching_pb2.Decision.Value(f"DECISION_{one.decision}"),
                reason=one.reason,
            )
            for one in kept.considered
        ],
    )
    _set_job(message.job, row)
    message.job.cluster, message.job.cluster_nodes, message.job.partition = (
        row.cluster,
        row.cluster_nodes,
        row.partition,
    )
    set_time(message.ended_at, row.ended_at)
    return message


def _set_job(message: matching_pb2.Job, row: JobColumns) -> None:
    message.user, message.name, message.program = row.user, row.name, row.program
    message.command_line, message.nodes = row.command_line, row.nodes
    set_time(message.submitted_at, row.submitted_at)


def _time(field: str, message: Message, name: str) -> datetime | None:
    """Return a field of type Timestamp, None if it is not set. Raises InvalidInput."""
    if not message.HasField(name):
        return None
    time: Timestamp = getattr(message, name)
    try:
        return time.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(field, time.seconds, "a time in the years 1 to 9999") from None
