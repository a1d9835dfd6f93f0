"""Translate values of parameters between messages and plain Python."""

from collections.abc import Mapping, MutableMapping

from service._gen import tuning_pb2
from service.core.errors import InvalidInput
from service.core.space import Scalar


def plain_value(field: str, value: tuning_pb2.Value) -> Scalar:
    """Return the value in plain Python. `field` is the name for the error if the value is not set."""
    kind = value.WhichOneof("kind")
    if kind is None:
        raise InvalidInput(field, None, "one of number, integer, text, flag")
    return getattr(value, kind)  # type: ignore[no-any-return]


def plain_values(field: str, values: Mapping[str, tuning_pb2.Value]) -> dict[str, Scalar]:
    """Return a configuration or a part of one in plain Python."""
    return {name: plain_value(f"{field}.{name}", value) for name, value in values.items()}


def set_value(message: tuning_pb2.Value, value: Scalar) -> None:
    """Write a plain value into a message. A bool is a flag here, although Python counts it as an integer."""
    if isinstance(value, bool):
        message.flag = value
    elif isinstance(value, float):
        message.number = value
    elif isinstance(value, int):
        message.integer = value
    else:
        message.text = value


def set_values(message: MutableMapping[str, tuning_pb2.Value], values: Mapping[str, Scalar]) -> None:
    """Write plain values by name into a message."""
    for name, value in values.items():
        set_value(message[name], value)
