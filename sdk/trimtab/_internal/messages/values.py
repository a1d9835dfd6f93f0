"""Conversion between values in messages and plain Python."""

import math
import operator
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import SupportsFloat, SupportsIndex, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from trimtab._gen import tuning_pb2 as pb
from trimtab.errors import InvalidInput
from trimtab.space import Parameter, Params, Scalar, cast

State = TypeVar("State", bound=StrEnum)
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
# The service takes no larger values of metrics: they are no measurements of a system.
LARGEST_METRIC = 1e100
# The longest time that a Duration message can hold: about 10,000 years.
_LONGEST_SECONDS = 315_576_000_000


def to_value(field: str, value: object) -> pb.Value:
    """Return a Python or numpy scalar as a message. Raises InvalidInput for anything else."""
    plain = _plain(value)
    match plain:
        case bool():  # before int, because bool is a subclass of int
            return pb.Value(flag=plain)
        case int():
            return pb.Value(integer=to_int(field, plain))
        case float():
            return pb.Value(number=plain)
        case str():
            return pb.Value(text=plain)
    raise InvalidInput.of(field, value, "a number, a string or a boolean")


def from_value(value: pb.Value) -> Scalar:
    """Return the Python value of a message."""
    match value.WhichOneof("kind"):
        case "number":
            return value.number
        case "integer":
            return value.integer
        case "flag":
            return value.flag
        case _:
            return value.text


def from_values(values: Mapping[str, pb.Value]) -> Params:
    """Return the Python values of messages by name."""
    return {name: from_value(value) for name, value in values.items()}


def to_scalar(field: str, value: object) -> Scalar:
    """Return a Python or numpy scalar as the Python value that a message can hold. Raises InvalidInput."""
    return from_value(to_value(field, value))


def to_value_list(field: str, values: Sequence[Scalar]) -> list[pb.Value]:
    """Return scalars as messages. Raises InvalidInput, which names the place in the list."""
    return [to_value(f"{field}[{index}]", value) for index, value in enumerate(values)]


def to_params(field: str, space: Sequence[Parameter], values: Mapping[str, object]) -> dict[str, pb.Value]:
    """Return a configuration, or a part of one, as messages. The service checks names and values."""
    plain: dict[str, Scalar] = {name: to_scalar(f"{field}.{name}", value) for name, value in values.items()}
    return {name: to_value(f"{field}.{name}", value) for name, value in cast(space, plain).items()}


def from_params(space: Sequence[Parameter], message: Mapping[str, pb.Value]) -> Params:
    """Return a configuration in the order of the space, then parameters that the space lacks.

    Those are in trials from before an edit of the space, and in later ones if this program does not know of the edit.
    """
    values = cast(space, {name: from_value(value) for name, value in sorted(message.items())})
    known = {parameter.name: values[parameter.name] for parameter in space if parameter.name in values}
    return {**known, **values}


def to_metrics(values: Mapping[str, object]) -> dict[str, float]:
    """Return metric values as floats. The service checks that they are finite and complete.

    Raises InvalidInput for a finite value beyond LARGEST_METRIC.
    """
    metrics = {name: to_float(f"metrics.{name}", value) for name, value in values.items()}
    for name, value in metrics.items():
        if math.isfinite(value) and not is_measurement(value):
            allowed = (
                f"a number from {-LARGEST_METRIC:g} to {LARGEST_METRIC:g}, or `infeasible` for a configuration that"
                " does not work"
            )
            raise InvalidInput.of(f"metrics.{name}", value, allowed, code="metric_too_large")
    return metrics


def is_measurement(value: float) -> bool:
    """Return whether the service takes the value of a metric: it is finite, and not larger than LARGEST_METRIC."""
    return abs(value) <= LARGEST_METRIC


def infinite_beyond(value: float) -> float:
    """Return the value, or infinity in place of a number that is too large for a measurement."""
    return value if is_measurement(value) or not math.isfinite(value) else math.copysign(math.inf, value)


def to_float(field: str, value: object) -> float:
    """Return a number as a float. Raises InvalidInput for anything else, also for a string."""
    if isinstance(value, (str, bytes)) or not isinstance(value, (SupportsFloat, SupportsIndex)):
        raise InvalidInput.of(field, value, "a number")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput.of(field, value, "a number") from error


def to_int(field: str, value: object) -> int:
    """Return the value as an int. Raises InvalidInput if it is not a whole number, or does not fit in 64 bits."""
    try:
        whole = int(value) if isinstance(value, float) and value.is_integer() else operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise InvalidInput.of(field, value, "a whole number") from error
    if not _MIN_INT64 <= whole <= _MAX_INT64:
        raise InvalidInput.of(field, value, "a whole number of 64 bits")
    return whole


def to_int32(field: str, value: object) -> int:
    """Return a whole number that a message can hold in 32 bits. Raises InvalidInput."""
    whole = to_int(field, value)
    if not -(2**31) <= whole < 2**31:
        raise InvalidInput.of(field, value, "a whole number of 32 bits")
    return whole


def to_duration(field: str, value: object) -> Duration:
    """Return a time in seconds as a message. Raises InvalidInput if it is too long or not a number."""
    seconds = to_float(field, value)
    if not abs(seconds) <= _LONGEST_SECONDS:
        raise InvalidInput.of(field, value, "a number of seconds")
    message = Duration()
    message.FromNanoseconds(round(seconds * 1e9))
    return message


def from_duration(message: Duration) -> float:
    """Return a time in seconds."""
    return message.ToNanoseconds() / 1e9


def from_time(message: Timestamp) -> datetime | None:
    """Return a time with its zone, None for a message that is not set."""
    if not message.seconds and not message.nanos:
        return None
    return message.ToDatetime(tzinfo=UTC)


def to_member(kind: type[State], field: str, state: str) -> State:
    """Return a state by its name in upper or lower case. Raises InvalidInput."""
    try:
        return kind(state.upper())
    except ValueError as error:
        raise InvalidInput.of(field, state, ", ".join(kind)) from error


def _plain(value: object) -> object:
    # numpy scalars return a Python value from item(). float64 is a subclass of float, int64 is not one of int.
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "shape", None) == ():
        return item()
    return value
