"""Conversion between the message of a study's specification and the SDK's classes."""

from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from functools import partial
from types import NoneType
from typing import Any, get_args

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.fields import CONVERTERS, from_message, read_field
from trimtab._internal.messages.space import from_parameter, to_parameter
from trimtab._internal.messages.structs import from_struct, to_struct
from trimtab._internal.messages.values import (
    to_duration,
    to_float,
    to_int,
    to_int32,
    to_value,
)
from trimtab.context import ContextVariable
from trimtab.errors import InvalidInput, JsonValue
from trimtab.method import FinalCheck, Policy
from trimtab.objective import Maximize, Minimize, Objective
from trimtab.spec import Execution, JobMetadata, Placement, StudySpec

_LIMITS = ("max_trials", "max_time", "max_node_hours")


# A specification is one flat class. These attributes are elsewhere in its message; all others have the name of a field.
_PLACES = {
    "algorithm": "algorithm.name",
    "algorithm_options": "algorithm.options",
    **{name: f"budget.{name}" for name in _LIMITS},
}
_NUMBERS: Mapping[int, Callable[[str, Any], Any]] = {
    FieldDescriptor.CPPTYPE_INT32: to_int32,
    FieldDescriptor.CPPTYPE_INT64: to_int,
    FieldDescriptor.CPPTYPE_DOUBLE: to_float,
}


def to_spec(spec: StudySpec) -> pb.StudySpec:
    """Return a study's specification as a message. Raises InvalidInput for values that a message cannot hold."""
    message = pb.StudySpec()
    for attribute in fields(spec):
        target, name = _place(message, attribute.name)
        # The attributes of an execution are arguments of their own when a study is created.
        field = "" if name == "execution" else attribute.name
        _set_attribute(target, name, field, attribute, spec)
    return message


def from_spec(message: pb.StudySpec) -> StudySpec:
    """Return the specification in a message."""
    return from_message(
        StudySpec,
        message,
        algorithm=message.algorithm.name,
        algorithm_options=from_struct(message.algorithm.options),
        **{name: read_field(message.budget, name) for name in _LIMITS},
    )


def _place(message: Any, attribute: str) -> tuple[Any, str]:
    """Return the message that has an attribute of a specification, and the name of its field there."""
    outer, _, name = _PLACES.get(attribute, attribute).rpartition(".")
    return getattr(message, outer) if outer else message, name


def _set_attribute(message: Any, name: str, field: str, attribute: Field[Any], owner: Any) -> None:
    value = getattr(owner, attribute.name)
    if value is not None or NoneType not in get_args(attribute.type):
        _set(message, name, field, value)


def _set(message: Any, name: str, field: str, value: Any) -> None:
    """Write a value into a field of a message. `field` is its name for errors."""
    described = message.DESCRIPTOR.fields_by_name[name]
    if described.message_type is None:
        if described.is_repeated:
            getattr(message, name).extend(value)
        else:
            convert = _NUMBERS.get(described.cpp_type)
            setattr(message, name, value if convert is None else convert(field, value))
    elif described.is_repeated:
        for index, item in enumerate(value):
            _set_message(getattr(message, name).add(), f"{field}[{index}]", item)
    else:
        getattr(message, name).SetInParent()
        _set_message(getattr(message, name), field, value)


def _set_message(message: Any, field: str, value: Any) -> None:
    match message:
        case Duration():
            message.CopyFrom(to_duration(field, value))
        case Struct():
            message.CopyFrom(_to_options(field, value))
        case pb.Value():
            message.CopyFrom(to_value(field, value))
        case pb.Parameter():
            message.CopyFrom(to_parameter(field, value))
        case pb.Objective():
            message.CopyFrom(_to_objective(field, value))
        case pb.Policy():
            message.CopyFrom(_to_policy(field, value))
        case pb.FinalCheck():
            message.CopyFrom(pb.FinalCheck(off=True) if value is False else to_final_check(value))
        case _:
            _set_attributes(message, field, value)


def _set_attributes(message: Any, field: str, value: Any) -> None:
    for attribute in fields(value):
        place = f"{field}.{attribute.name}" if field else attribute.name
        _set_attribute(message, attribute.name, place, attribute, value)


def to_budget(changes: Mapping[str, float | None]) -> tuple[pb.Budget, FieldMask]:
    """Return the changed fields of a budget (max_time in seconds) and their names. Raises InvalidInput."""
    message = pb.Budget()
    for name, value in changes.items():
        if name not in _LIMITS:
            raise InvalidInput.of("budget", name, ", ".join(_LIMITS))
        if value is not None:
            _set(message, name, name, value)
    return message, FieldMask(paths=list(changes))


def to_final_check(check: FinalCheck) -> pb.FinalCheck:
    """Return the message for the settings of a final check. Raises InvalidInput."""
    if not isinstance(check, FinalCheck):
        raise InvalidInput.of("final_check", check, "True, False or trimtab.FinalCheck(max_trials=20)")
    message = pb.FinalCheck()
    _set_attributes(message, "final_check", check)
    return message


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


def _to_options(field: str, options: Mapping[str, JsonValue]) -> Struct:
    try:
        return to_struct(options)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInput.of(field, options, "values that JSON can represent") from error


CONVERTERS.update(
    {
        Struct.DESCRIPTOR: from_struct,
        pb.Parameter.DESCRIPTOR: from_parameter,
        pb.Objective.DESCRIPTOR: from_objective,
        pb.Policy.DESCRIPTOR: lambda one: Policy(one.name, **from_struct(one.options)),
        pb.FinalCheck.DESCRIPTOR: lambda one: False if one.off else from_message(FinalCheck, one),
        # Studies that are older than placement have none: their trials share nodes and run on any.
        pb.Execution.DESCRIPTOR: lambda one: from_message(
            Execution, one, placement=Placement(one.placement.exclusive, one.placement.spread)
        ),
        pb.JobMetadata.DESCRIPTOR: lambda one: from_message(JobMetadata, one, nodes=one.nodes or None),
        pb.ContextVariable.DESCRIPTOR: partial(from_message, ContextVariable),
    }
)
