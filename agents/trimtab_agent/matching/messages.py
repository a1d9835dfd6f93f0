"""Jobs and matches as messages of the service."""

from collections.abc import Mapping

from trimtab_agent._gen import matching_pb2
from trimtab_agent.components.messages import to_value
from trimtab_agent.matching.decision import Decision
from trimtab_agent.matching.job import Job, Match
from trimtab_agent.matching.spool import Submission

DECISIONS: Mapping[Decision, matching_pb2.Decision.ValueType] = {
    Decision.APPLIED: matching_pb2.DECISION_APPLIED,
    Decision.CONTROL: matching_pb2.DECISION_CONTROL,
    Decision.DRY_RUN: matching_pb2.DECISION_DRY_RUN,
    Decision.REFUSED: matching_pb2.DECISION_REFUSED,
}
ENDS: Mapping[str, matching_pb2.JobEnd.ValueType] = {
    "completed": matching_pb2.JOB_END_COMPLETED,
    "failed": matching_pb2.JOB_END_FAILED,
    "cancelled": matching_pb2.JOB_END_CANCELLED,
}


def of_job(job: Job) -> matching_pb2.Job:
    """Return a job as a message."""
    message = matching_pb2.Job(
        user=job.user,
        name=job.name,
        program=job.program,
        command_line=job.command_line,
        nodes=job.nodes,
        cluster=job.cluster,
        cluster_nodes=job.cluster_nodes,
        partition=job.partition,
    )
    message.submitted_at.FromNanoseconds(int(job.submitted_at * 1e9))
    return message


def to_match(message: matching_pb2.RecordMatch) -> Match:
    """Return the match in a message."""
    record = message.record
    return Match(
        record=record.id,
        component=record.component,
        digest=record.digest,
        application=record.application,
        params={name: to_value(value) for name, value in record.params.items()},
        score=message.score,
    )


def of_submission(submission: Submission) -> matching_pb2.JobReport:
    """Return the report of a submission that has ended."""
    end = submission.end
    assert end is not None
    message = matching_pb2.JobReport(
        submission=submission.id,
        job_id=submission.job_id,
        job=of_job(submission.job),
        considered=[
            matching_pb2.Considered(
                record=one.record, score=one.score, decision=DECISIONS[one.decision], reason=one.reason
            )
            for one in submission.considered
        ],
        end=ENDS[end.state],
        seconds=end.seconds,
    )
    message.ended_at.FromNanoseconds(int(end.at * 1e9))
    return message
