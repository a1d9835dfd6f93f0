"""Translate the agent's values to messages of the service and back."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration

from trimtab_agent._gen import agent_pb2, matching_pb2, tuning_pb2
from trimtab_agent.invocation import Invocation, hidden, shown_value
from trimtab_agent.lease import ComponentOrder, Lease
from trimtab_agent.runners.base import Json, Outcome
from trimtab_agent.submissions import Decision, Explored, Job, Match, Submission
from trimtab_components import recipe
from trimtab_components.live import Guard, Live
from trimtab_components.schema import Choices, Component, Parameter, Range, Scalar

# The longest recipe of a component that is sent, in characters, and of all components together: the service takes
# messages of a few MiB.
LONGEST_RECIPE = 256 << 10
MOST_RECIPES = 1 << 20
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
    Decision.EXPLORED: matching_pb2.DECISION_EXPLORED,
}
ENDS: Mapping[str, matching_pb2.JobEnd.ValueType] = {
    "completed": matching_pb2.JOB_END_COMPLETED,
    "failed": matching_pb2.JOB_END_FAILED,
    "cancelled": matching_pb2.JOB_END_CANCELLED,
}


def of_interference(measured: Mapping[str, Json] | None) -> tuning_pb2.Interference | None:
    """Return measured interference as a message; None if there is none."""
    return None if measured is None else tuning_pb2.Interference(**measured)


def of_component(component: Component, *, shown: bool = False) -> agent_pb2.Component:
    """Return a component's name, digest and space as a message, and if `shown` how values reach its program."""
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
        recipe=_recipe(component) if shown and component.live is None else "",
        live=None if component.live is None else _live_component(component.live),
    )


def _live_component(live: Live) -> agent_pb2.LiveComponent:
    """Return what the service must know of a live system."""
    return agent_pb2.LiveComponent(
        restart=live.restart,
        forbidden=live.forbidden,
        guards=[_guard(guard) for guard in live.guards.values()],
        warm_up=live.warm_up,
        block=live.block,
    )


def _guard(guard: Guard) -> agent_pb2.LiveGuard:
    side = "above_control" if guard.of_control else "above" if guard.above else "below"
    message = agent_pb2.LiveGuard(name=guard.name, metric=guard.metric, for_seconds=guard.seconds)
    setattr(message, side, guard.limit)
    return message


def _recipe(component: Component) -> str:
    """Return the recipe of a component without secrets; "" if it is too long."""
    text = recipe.text_of(component, hide=hidden, hide_value=shown_value)
    return text if len(text) <= LONGEST_RECIPE else ""


def of_components(components: Sequence[Component], *, shown: bool) -> list[agent_pb2.Component]:
    """Return components as messages, as `of_component` does. Recipes that exceed MOST_RECIPES are left out."""
    found, left = [], MOST_RECIPES
    for component in components:
        message = of_component(component, shown=shown)
        left -= len(message.recipe)
        if left < 0:
            message.recipe = ""
        found.append(message)
    return found


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
        live=to_plan(message.live) if message.HasField("live") else None,
    )


def to_order(message: agent_pb2.ComponentOrder) -> ComponentOrder:
    """Return the order in a message."""
    return ComponentOrder(message.id, message.component, message.action == message.ACTION_INSTALL)


def to_plan(message: agent_pb2.LivePlan) -> Mapping[str, Json]:
    """Return the plan of a live trial with the names of the message."""
    names = (
        *("design", "warm_up", "block", "least_pairs", "most_pairs", "min_gain", "objective", "maximize"),
        *("deviation", "seed", "keep", "seconds_left", "instances", "step", "durable"),
    )
    return {
        **{name: getattr(message, name) for name in names},
        **{name: list(getattr(message, name)) for name in ("places", "in_force", "earlier")},
        "guards": [
            {
                "name": one.name,
                "metric": one.metric,
                **{key: getattr(one, key) for key in ("above", "below", "above_control") if one.HasField(key)},
                "for_seconds": one.for_seconds,
            }
            for one in message.guards
        ],
        "budgets": [
            {name: getattr(one, name) for name in ("name", "slow", "of", "left", "most", "period")}
            for one in message.budgets
        ],
        "original": {name: to_value(value) for name, value in message.original.items()},
    }


def of_live(found: Mapping[str, Json] | None) -> tuning_pb2.LiveResult | None:
    """Return the result of a live trial as a message; None if there is none."""
    if found is None:
        return None
    return tuning_pb2.LiveResult(
        decision=found["decision"],
        pairs=[tuning_pb2.LivePair(**one) for one in found["pairs"]],
        effect=found["effect"],
        low=found["low"],
        high=found["high"],
        deviation=found["deviation"],
        cost=found["cost"],
        incumbent={name: of_value(_scalar(value)) for name, value in found["incumbent"].items()},
        instances=found["instances"],
        kept=found["kept"],
        rolled_back=found.get("rolled_back", False),
        audit=[tuning_pb2.LiveEntry(**one) for one in found["audit"]],
    )


def of_live_instance(found: Mapping[str, Json]) -> tuning_pb2.LiveInstance:
    """Return what is seen of an instance of a live system as a message, with the same names."""
    plain = {name: value for name, value in found.items() if name not in ("settings", "guards", "looks")}
    return tuning_pb2.LiveInstance(
        **plain,
        settings={name: of_value(_scalar(value)) for name, value in found["settings"].items()},
        guards=[tuning_pb2.LiveReading(**one) for one in found["guards"]],
        looks=[tuning_pb2.LiveLook(**one) for one in found["looks"]],
    )


def _scalar(value: Json) -> Scalar:
    """Return a setting that a command has printed as a value: another kind of JSON, or a huge number, as text."""
    if isinstance(value, int) and abs(value) >= 1 << 63:
        return str(value)
    return value if isinstance(value, bool | int | float | str) else str(value)


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


def to_explored(message: matching_pb2.ExploreResponse) -> Explored:
    """Return the place of a job in a pair."""
    return Explored(
        study=message.study,
        trial=message.trial,
        candidate=message.candidate,
        params={name: to_value(value) for name, value in message.params.items()},
        waits=message.waits,
        reason=message.reason,
        code=message.reason_code,
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
        confirmed=submission.confirmed,
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
