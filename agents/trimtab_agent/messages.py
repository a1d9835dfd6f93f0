"""Translate the agent's values to messages of the service and back."""

from collections.abc import Mapping
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from trimtab_agent._gen import agent_pb2, matching_pb2, tuning_pb2
from trimtab_agent.invocation import Invocation
from trimtab_agent.lease import Lease
from trimtab_agent.runners.base import Json, Outcome
from trimtab_agent.submissions import Decision, Job, Match, Submission
from trimtab_components.schema import Choices, Component, Parameter, Range, Scalar

OUTCOMES = {
    Outcome.COMPLETED: agent_pb2.SettleLeaseRequest.OUTCOME_COMPLETED,
    Outcome.INFEASIBLE: agent_pb2.SettleLeaseRequest.OUTCOME_INFEASIBLE,
    Outcome.FAILED: agent_pb2.SettleLeaseRequest.OUTCOME_FAILED,
    Outcome.CANCELLED: agent_pb2.SettleLeaseRequest.OUTCOME_CANCELLED,
    Outcome.RELEASED: agent_pb2.SettleLeaseRequest.OUTCOME_RELEASED,
}
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


def of_interference(measured: Mapping[str, Json] | None) -> tuning_pb2.Interference | None:
    """Return measured interference as a message; None if there is none."""
    return None if measured is None else tuning_pb2.Interference(**measured)


def of_component(component: Component) -> agent_pb2.Component:
    """Return a component's name, digest and space as a message. It contains no commands."""
    return agent_pb2.Component(
        name=component.name,
        digest=component.digest,
        applications=list(component.applications),
        description=component.description,
        space=[of_parameter(parameter) for parameter in component.parameters.values()],
        metrics=list(component.metrics),
        file_digest=component.file_digest,
        injected=[
            agent_pb2.Injected(
                text=one.text,
                application=one.application,
                parameter=one.parameter,
                values=[of_value(value) for value in one.values],
            )
            for one in component.injected
        ],
    )


def of_parameter(parameter: Parameter) -> tuning_pb2.Parameter:
    """Return a parameter with its range, default and condition as a message."""
    message = tuning_pb2.Parameter(name=parameter.name, default=of_value(parameter.default), unit=parameter.unit)
    domain = parameter.domain
    if isinstance(domain, Range) and domain.kind == "int":
        step = None if domain.step is None else int(domain.step)
        message.integer.CopyFrom(
            tuning_pb2.Parameter.IntRange(
                min=int(domain.min), max=int(domain.max), log=domain.log, step=step, factor=domain.factor
            )
        )
    elif isinstance(domain, Range):
        message.float.CopyFrom(
            tuning_pb2.Parameter.FloatRange(
                min=domain.min, max=domain.max, log=domain.log, step=domain.step, factor=domain.factor
            )
        )
    elif isinstance(domain, Choices):
        values = tuning_pb2.Values(values=[of_value(value) for value in domain.values])
        (message.ordinal if domain.ordered else message.categorical).CopyFrom(values)
    else:
        message.boolean.SetInParent()
    if parameter.condition:
        message.condition.parent = parameter.condition.parent
        message.condition.values.extend(of_value(value) for value in parameter.condition.values)
    return message


def of_value(value: Scalar) -> tuning_pb2.Value:
    """Return a value as a message."""
    if isinstance(value, bool):
        return tuning_pb2.Value(flag=value)
    if isinstance(value, int):
        return tuning_pb2.Value(integer=value)
    return tuning_pb2.Value(number=value) if isinstance(value, float) else tuning_pb2.Value(text=value)


def to_value(message: tuning_pb2.Value) -> Scalar:
    """Return the value in a message. An empty message gives "", which the parameter's check then refuses."""
    kind = message.WhichOneof("kind")
    value: Scalar = getattr(message, kind) if kind else ""
    return value


def to_lease(message: agent_pb2.Lease) -> Lease:
    """Return the lease in a message."""
    return Lease(
        id=message.id,
        study=message.study,
        trial=message.trial,
        attempt=message.attempt,
        component=message.component,
        digest=message.digest,
        application=message.application,
        params={name: to_value(value) for name, value in message.params.items()},
        metrics=tuple(message.metrics),
        trial_timeout=to_seconds(message.trial_timeout),
        tenant=message.tenant,
        exclusive=message.exclusive,
        spread=message.spread,
        measured_on=tuple(message.measured_on),
        same_node=message.same_node,
        traceparent=message.traceparent,
    )


def of_invocation(shown: Invocation) -> agent_pb2.Invocation:
    """Return an invocation as a message."""
    return agent_pb2.Invocation(
        commands=[
            agent_pb2.Invocation.Command(step=one.step, argv=one.argv, environment=one.environment)
            for one in shown.commands
        ],
        folder=shown.folder,
        host=shown.host,
        script=shown.script,
        scheduler_options=shown.scheduler_options,
    )


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


def of_seconds(seconds: float) -> Duration:
    """Return a time in seconds as a message."""
    message = Duration()
    message.FromTimedelta(timedelta(seconds=seconds))
    return message


def to_seconds(duration: Duration) -> float:
    """Return the seconds of a message."""
    return duration.seconds + duration.nanos / 1e9
