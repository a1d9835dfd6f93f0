"""Conversion between the messages of a search space and the SDK's parameters."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trimtab._gen import tuning_pb2 as pb
from trimtab._internal.messages.fields import from_message
from trimtab._internal.messages.values import (
    from_value,
    to_float,
    to_int,
    to_params,
    to_scalar,
    to_value,
    to_value_list,
)
from trimtab.errors import InvalidInput
from trimtab.space import Bool, Categorical, Float, Int, Ordinal, Parameter, condition


def to_parameter(field: str, parameter: Parameter) -> pb.Parameter:
    """Return a parameter as a message. Raises InvalidInput for values that a message cannot hold."""
    if not isinstance(parameter, Parameter):
        raise InvalidInput.of(field, parameter, "trimtab.Float, Int, Ordinal, Categorical or Bool")
    if not isinstance(parameter.name, str):
        raise InvalidInput.of(f"{field}.name", parameter.name, "a string")
    if not isinstance(parameter.unit, str):
        raise InvalidInput.of(f"{field}.unit", parameter.unit, "a string")
    if not isinstance(parameter.optional, bool):
        raise InvalidInput.of(f"{field}.optional", parameter.optional, "True or False")
    message = pb.Parameter(name=parameter.name, unit=parameter.unit, optional=parameter.optional)
    match parameter:
        case Float():
            _fill_range(message.float, field, parameter, to_float)
        case Int():
            _fill_range(message.integer, field, parameter, to_int)
        case Ordinal():
            message.ordinal.CopyFrom(pb.Values(values=to_value_list(f"{field}.values", parameter.values)))
        case Categorical():
            message.categorical.CopyFrom(pb.Values(values=to_value_list(f"{field}.values", parameter.values)))
        case Bool():
            message.boolean.SetInParent()
    if parameter.default is not None:
        default = parameter.cast(to_scalar(f"{field}.default", parameter.default))
        message.default.CopyFrom(to_value(f"{field}.default", default))
    requirement = condition(parameter)
    if requirement is not None:
        parent, values = requirement
        message.condition.CopyFrom(
            pb.Condition(parent=parent, values=to_value_list(f"{field}.when", values)),
        )
    return message


def _fill_range(message: Any, field: str, parameter: Float | Int, convert: Callable[[str, object], float]) -> None:
    message.min = convert(f"{field}.min", parameter.min)
    message.max = convert(f"{field}.max", parameter.max)
    message.log = parameter.log
    if parameter.step is not None:
        message.step = convert(f"{field}.step", parameter.step)
    if parameter.factor is not None:
        message.factor = to_float(f"{field}.factor", parameter.factor)


def from_parameter(message: pb.Parameter) -> Parameter:
    """Return a parameter as the user would write it."""
    name, unit, optional, when = message.name, message.unit, message.optional, None
    if message.HasField("condition"):
        when = (message.condition.parent, tuple(from_value(value) for value in message.condition.values))
    default = from_value(message.default) if message.HasField("default") else None
    match message.WhichOneof("kind"):
        case "float":
            real = None if default is None else float(default)
            return from_message(Float, message.float, name=name, default=real, when=when, unit=unit, optional=optional)
        case "integer":
            whole = None if default is None else int(default)
            return from_message(Int, message.integer, name=name, default=whole, when=when, unit=unit, optional=optional)
        case "ordinal":
            values = [from_value(value) for value in message.ordinal.values]
            return Ordinal(name, values, default=default, when=when, unit=unit, optional=optional)
        case "categorical":
            values = [from_value(value) for value in message.categorical.values]
            return Categorical(name, values, default=default, when=when, unit=unit, optional=optional)
        case _:
            return Bool(
                name, default=None if default is None else bool(default), when=when, unit=unit, optional=optional
            )


def to_range(field: str, given: object) -> pb.Range:
    """Return a parameter's range as a message. Raises InvalidInput for values that a message cannot hold."""
    allowed = '{"min": ..., "max": ...} or {"values": [...]}'
    if not isinstance(given, Mapping) or not given.keys() <= {"min", "max", "values"}:
        raise InvalidInput.of(field, given, allowed)
    message = pb.Range()
    for name in ("min", "max"):
        if name in given:
            getattr(message, name).CopyFrom(to_value(f"{field}.{name}", given[name]))
    if "values" in given:
        values = given["values"]
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise InvalidInput.of(f"{field}.values", values, "a list of numbers, strings or booleans")
        message.values.SetInParent()
        message.values.values.extend(to_value_list(f"{field}.values", values))
    return message


def to_edit(
    study: str,
    space: Sequence[Parameter],
    *,
    add: Sequence[Parameter],
    remove: Sequence[str] | Mapping[str, object],
    fix: Mapping[str, object],
    free: Sequence[str],
) -> pb.EditSpaceRequest:
    """Return the message for an edit of a space. Raises InvalidInput for values that a message cannot hold."""
    for name, names in (("remove", remove), ("free", free)):
        if isinstance(names, str):
            raise InvalidInput.of(name, names, "a list of names of parameters")
    message = pb.EditSpaceRequest(
        study=study,
        add=[to_parameter(f"add[{index}]", parameter) for index, parameter in enumerate(add)],
        fix=to_params("fix", space, fix),
        free=free,
    )
    given = remove if isinstance(remove, Mapping) else {}
    values = to_params("remove", space, {name: value for name, value in given.items() if value is not None})
    for name in remove:
        # A value that is not set stands for the parameter's default.
        message.remove[name].CopyFrom(values.get(name, pb.Value()))
    return message
