"""Translate the messages of matching to plain Python and back."""

from trimtab._gen import matching_pb2 as pb
from trimtab._internal.messages.values import from_time, from_value, to_float, to_int32
from trimtab.errors import InvalidInput
from trimtab.records import (
    Considered,
    Feedback,
    Job,
    Match,
    MatchingSettings,
    Part,
    Record,
    RecordState,
    ReportedJob,
)

_STATES = {state: pb.RecordState.Value(f"RECORD_STATE_{state}") for state in RecordState}


def to_job(job: Job) -> pb.Job:
    """Return a job as a message."""
    message = pb.Job(
        user=job.user,
        name=job.name,
        program=job.program,
        command_line=job.command_line,
        nodes=to_int32("job.nodes", job.nodes),
        cluster=job.cluster,
        cluster_nodes=to_int32("job.cluster_nodes", job.cluster_nodes),
        partition=job.partition,
    )
    if job.submitted_at is not None:
        message.submitted_at.FromDatetime(job.submitted_at.astimezone())
    return message


def from_job(message: pb.Job) -> Job:
    """Return the job in a message."""
    return Job(
        user=message.user,
        name=message.name,
        program=message.program,
        command_line=message.command_line,
        nodes=message.nodes,
        submitted_at=from_time(message.submitted_at),
        cluster=message.cluster,
        cluster_nodes=message.cluster_nodes,
        partition=message.partition,
    )


def to_state(state: RecordState | str) -> pb.RecordState.ValueType:
    """Return the number of a record's state. Raises InvalidInput."""
    if state not in list(RecordState):
        raise InvalidInput.of("state", state, ", ".join(RecordState))
    return _STATES[RecordState(state)]


def from_record(message: pb.Record) -> Record:
    """Return the record in a message."""
    return Record(
        id=message.id,
        job=from_job(message.job),
        component=message.component,
        digest=message.digest,
        application=message.application,
        study=message.study,
        params={name: from_value(message.params[name]) for name in sorted(message.params)},
        gain=message.gain,
        gain_low=message.gain_low,
        gain_high=message.gain_high,
        state=RecordState(pb.RecordState.Name(message.state).removeprefix("RECORD_STATE_")),
        state_reason=message.state_reason,
        created_at=from_time(message.created_at),
        feedback=_from_feedback(message.feedback) if message.HasField("feedback") else None,
    )


def from_match(message: pb.RecordMatch) -> Match:
    """Return the match in a message."""
    return Match(
        record=from_record(message.record),
        score=message.score,
        threshold=message.threshold,
        accepted=message.accepted,
        parts=tuple(Part(part.field, part.weight, part.similarity) for part in message.parts),
        reason=message.reason,
    )


def from_reported(message: pb.JobReport) -> ReportedJob:
    """Return the reported job in a message."""
    return ReportedJob(
        submission=message.submission,
        job_id=message.job_id,
        job=from_job(message.job),
        considered=tuple(
            Considered(one.record, one.score, pb.Decision.Name(one.decision).removeprefix("DECISION_"), one.reason)
            for one in message.considered
        ),
        end=pb.JobEnd.Name(message.end).removeprefix("JOB_END_"),
        seconds=message.seconds,
        ended_at=from_time(message.ended_at),
    )


def to_settings(settings: MatchingSettings) -> pb.Settings:
    """Return settings as a message."""
    return pb.Settings(
        threshold=to_float("threshold", settings.threshold),
        weights={name: to_float(f"weights.{name}", weight) for name, weight in settings.weights.items()},
        night_from=to_int32("night_from", settings.night_from),
        night_until=to_int32("night_until", settings.night_until),
    )


def from_settings(message: pb.Settings) -> MatchingSettings:
    """Return the settings in a message."""
    weights = dict(sorted(message.weights.items()))
    return MatchingSettings(message.threshold, weights, message.night_from, message.night_until)


def _from_feedback(message: pb.Feedback) -> Feedback:
    known = message.HasField("change")
    return Feedback(
        applied=message.applied_jobs,
        control=message.control_jobs,
        change=message.change if known else None,
        low=message.change_low if known else None,
        high=message.change_high if known else None,
    )
