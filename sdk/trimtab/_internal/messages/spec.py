"""Conversion between the message of a study's specification and the SDK's classes."""

from collections.abc import Mapping
from typing import Literal

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.space import from_parameter, to_parameter
from trimtab._internal.messages.structs import from_struct, to_struct
from trimtab._internal.messages.values import (
    from_duration,
    from_value,
    to_duration,
    to_float,
    to_int,
    to_int32,
    to_value_list,
)
from trimtab.context import ContextVariable
from trimtab.errors import InvalidInput, JsonValue
from trimtab.method import FinalCheck, Policy
from trimtab.objective import Maximize, Minimize, Objective
from trimtab.spec import Execution, JobMetadata, Placement, StudySpec

_LIMITS = ("max_trials", "max_time", "max_node_hours")


def to_spec(spec: StudySpec) -> pb.StudySpec:
    """Return a study's specification as a message."""
    message = pb.StudySpec(
        space=[to_parameter(f"space[{index}]", parameter) for index, parameter in enumerate(spec.space)],
        constraints=spec.constraints,
        objectives=[_to_objective(f"objectives[{index}]", item) for index, item in enumerate(spec.objectives)],
        algorithm=pb.Algorithm(name=spec.algorithm, options=_to_options("algorithm_options", spec.algorithm_options)),
        seed=to_int("seed", spec.seed),
        noisy=spec.noisy,
        description=spec.description,
    )
    if spec.max_trials is not None:
        message.budget.max_trials = to_int32("max_trials", spec.max_trials)
    if spec.max_time is not None:
        message.budget.max_time.CopyFrom(to_duration("max_time", spec.max_time))
    if spec.max_node_hours is not None:
        message.budget.max_node_hours = to_float("max_node_hours", spec.max_node_hours)
    message.outcome_constraints.extend(spec.outcome_constraints)
    if spec.resampling is not None:
        message.resampling.CopyFrom(_to_policy("resampling", spec.resampling))
    if spec.estimator is not None:
        message.estimator.CopyFrom(_to_policy("estimator", spec.estimator))
    message.pruning.extend(_to_policy(f"pruning[{index}]", policy) for index, policy in enumerate(spec.pruning))
    if spec.stopping is not None:
        message.stopping.CopyFrom(_to_options("stopping", spec.stopping))
    if spec.final_check is False:
        message.final_check.off = True
    elif spec.final_check is not None:
        message.final_check.CopyFrom(to_final_check(spec.final_check))
    if spec.execution is not None:
        message.execution.component = spec.execution.component
        message.execution.digest = spec.execution.digest
        message.execution.application = spec.execution.application
        message.execution.parallelism = to_int32("parallelism", spec.execution.parallelism)
        if spec.execution.trial_timeout is not None:
            message.execution.trial_timeout.CopyFrom(to_duration("trial_timeout", spec.execution.trial_timeout))
        placement = spec.execution.placement
        message.execution.placement.exclusive = placement.exclusive
        message.execution.placement.spread = placement.spread
    if spec.trial_timeout is not None:
        message.trial_timeout.CopyFrom(to_duration("trial_timeout", spec.trial_timeout))
    message.start_from.extend(spec.start_from)
    for place, variable in enumerate(spec.context):
        values = to_value_list(f"context[{place}].values", variable.values)
        cheaper = to_value_list(f"context[{place}].cheaper", variable.cheaper)
        message.context.add(name=variable.name, values=values, cheaper=cheaper)
    if spec.job is not None:
        nodes = 0 if spec.job.nodes is None else to_int32("job.nodes", spec.job.nodes)
        texts = {name: getattr(spec.job, name) for name in ("user", "name", "program", "command")}
        message.job.CopyFrom(pb.JobMetadata(**texts, nodes=nodes))
    return message


def from_spec(message: pb.StudySpec) -> StudySpec:
    """Return the specification in a message."""
    execution = None
    if message.HasField("execution"):
        timeout = message.execution.HasField("trial_timeout")
        execution = Execution(
            component=message.execution.component,
            digest=message.execution.digest,
            application=message.execution.application,
            parallelism=message.execution.parallelism,
            trial_timeout=from_duration(message.execution.trial_timeout) if timeout else None,
            placement=Placement(message.execution.placement.exclusive, message.execution.placement.spread),
        )
    return StudySpec(
        space=tuple(from_parameter(parameter) for parameter in message.space),
        objectives=tuple(from_objective(objective) for objective in message.objectives),
        constraints=tuple(message.constraints),
        algorithm=message.algorithm.name,
        algorithm_options=from_struct(message.algorithm.options),
        seed=message.seed,
        noisy=message.noisy,
        max_trials=message.budget.max_trials if message.budget.HasField("max_trials") else None,
        max_time=from_duration(message.budget.max_time) if message.budget.HasField("max_time") else None,
        execution=execution,
        max_node_hours=message.budget.max_node_hours if message.budget.HasField("max_node_hours") else None,
        outcome_constraints=tuple(message.outcome_constraints),
        resampling=_from_policy(message.resampling) if message.HasField("resampling") else None,
        estimator=_from_policy(message.estimator) if message.HasField("estimator") else None,
        pruning=tuple(_from_policy(policy) for policy in message.pruning),
        stopping=from_struct(message.stopping) if message.HasField("stopping") else None,
        final_check=_from_final_check(message.final_check) if message.HasField("final_check") else None,
        start_from=tuple(message.start_from),
        description=message.description,
        trial_timeout=from_duration(message.trial_timeout) if message.HasField("trial_timeout") else None,
        job=_from_job_metadata(message.job) if message.HasField("job") else None,
        context=tuple(
            ContextVariable(one.name, tuple(map(from_value, one.values)), tuple(map(from_value, one.cheaper)))
            for one in message.context
        ),
    )


def to_budget(changes: Mapping[str, float | None]) -> tuple[pb.Budget, FieldMask]:
    """Return the changed fields of a budget (max_time in seconds) and their names. Raises InvalidInput."""
    message = pb.Budget()
    for name, value in changes.items():
        if name not in _LIMITS:
            raise InvalidInput.of("budget", name, ", ".join(_LIMITS))
        if value is None:
            continue
        if name == "max_trials":
            message.max_trials = to_int32(name, value)
        elif name == "max_time":
            message.max_time.CopyFrom(to_duration(name, value))
        else:
            message.max_node_hours = to_float(name, value)
    return message, FieldMask(paths=list(changes))


def to_final_check(check: FinalCheck) -> pb.FinalCheck:
    """Return the message for the settings of a final check. Raises InvalidInput."""
    if not isinstance(check, FinalCheck):
        raise InvalidInput.of("final_check", check, "True, False or trimtab.FinalCheck(max_trials=20)")
    message = pb.FinalCheck()
    if check.width is not None:
        message.width = to_float("final_check.width", check.width)
    if check.max_trials is not None:
        message.max_trials = to_int32("final_check.max_trials", check.max_trials)
    if check.level is not None:
        message.level = to_float("final_check.level", check.level)
    if check.effects is not None:
        message.effects = to_int32("final_check.effects", check.effects)
    return message


def _from_final_check(message: pb.FinalCheck) -> FinalCheck | Literal[False]:
    if message.off:
        return False
    return FinalCheck(
        width=message.width if message.HasField("width") else None,
        max_trials=message.max_trials if message.HasField("max_trials") else None,
        level=message.level if message.HasField("level") else None,
        effects=message.effects if message.HasField("effects") else None,
    )


def _to_objective(field: str, objective: Objective) -> pb.Objective:
    match objective:
        case Minimize():
            goal = pb.Objective.GOAL_MINIMIZE
        case Maximize():
            goal = pb.Objective.GOAL_MAXIMIZE
        case _:
            raise InvalidInput.of(field, objective, "trimtab.Minimize(METRIC) or trimtab.Maximize(METRIC)")
    return pb.Objective(metric=objective.metric, goal=goal, unit=objective.unit)


def from_objective(message: pb.Objective) -> Objective:
    """Return the objective in a message."""
    kind = Maximize if message.goal == pb.Objective.GOAL_MAXIMIZE else Minimize
    return kind(message.metric, message.unit)


def _to_policy(field: str, policy: Policy) -> pb.Policy:
    if not isinstance(policy, Policy):
        raise InvalidInput.of(field, policy, "a policy's name or trimtab.Policy(NAME, OPTION=VALUE)")
    return pb.Policy(name=policy.name, options=_to_options(f"{field}.options", policy.options))


def _from_policy(message: pb.Policy) -> Policy:
    return Policy(message.name, **from_struct(message.options))


def _to_options(field: str, options: Mapping[str, JsonValue]) -> Struct:
    try:
        return to_struct(options)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput.of(field, options, "values that JSON can represent") from error


def _from_job_metadata(message: pb.JobMetadata) -> JobMetadata:
    return JobMetadata(message.user, message.name, message.program, message.command, message.nodes or None)
