"""Conversion between the messages of matching and the SDK's classes."""

from trimtab._gen import matching_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab._internal.messages.values import to_float, to_int32
from trimtab.errors import InvalidInput
from trimtab.records import (
    Audience,
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


def to_state(state: RecordState | str) -> pb.RecordState.ValueType:
    """Return the number of a record's state. Raises InvalidInput."""
    if state not in list(RecordState):
        raise InvalidInput.of("state", state, ", ".join(RecordState))
    return _STATES[RecordState(state)]


def from_record(message: pb.Record) -> Record:
    """Return the record in a message."""
    return from_message(
        Record,
        message,
        job=from_message(Job, message.job),
        state=RecordState(pb.RecordState.Name(message.state).removeprefix("RECORD_STATE_")),
        feedback=_from_feedback(message.feedback) if message.HasField("feedback") else None,
        audience=Audience.USER if message.audience == pb.AUDIENCE_USER else Audience.EVERYBODY,
    )


def from_match(message: pb.RecordMatch) -> Match:
    """Return the match in a message."""
    parts = tuple(from_message(Part, part) for part in message.parts)
    return from_message(Match, message, record=from_record(message.record), parts=parts)


def from_reported(message: pb.JobReport) -> ReportedJob:
    """Return the reported job in a message."""
    considered = tuple(
        from_message(Considered, one, decision=pb.Decision.Name(one.decision).removeprefix("DECISION_"))
        for one in message.considered
    )
    end = pb.JobEnd.Name(message.end).removeprefix("JOB_END_")
    return from_message(ReportedJob, message, job=from_message(Job, message.job), considered=considered, end=end)


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
    return from_message(MatchingSettings, message, weights=dict(sorted(message.weights.items())))


def _from_feedback(message: pb.Feedback) -> Feedback:
    known = message.HasField("change")
    return from_message(
        Feedback,
        message,
        applied=message.applied_jobs,
        control=message.control_jobs,
        unconfirmed=message.unconfirmed_jobs,
        low=message.change_low if known else None,
        high=message.change_high if known else None,
    )
