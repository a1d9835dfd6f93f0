"""Conversion of a message to the data class that has the same fields."""

from collections.abc import Callable
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from trimtab._gen import tuning_pb2
from trimtab._internal.messages.values import from_duration, from_time, from_value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kind = TypeVar("Kind", bound="DataclassInstance")

# Conversions of messages that are values of fields. Modules add those of their own messages.
CONVERTERS: dict[Descriptor, Callable[[Any], object]] = {
    Timestamp.DESCRIPTOR: from_time,
    Duration.DESCRIPTOR: from_duration,
    tuning_pb2.Value.DESCRIPTOR: from_value,
}


def from_message(kind: type[Kind], message: Message, **own: object) -> Kind:
    """Return an object of a data class: `own` gives the fields that need more than a copy from the message.

    The others have the name of a field of the message. A repeated field becomes a tuple and a map a dict. An optional
    number and a message that are not set become None.
    """
    copied = {name: read(message) for name, read in _readers(kind, message.DESCRIPTOR, frozenset(own))}
    return kind(**copied, **own)


def read_field(message: Message, name: str) -> Any:
    """Return the value that `from_message` gives to a field."""
    fields_by_name: Any = message.DESCRIPTOR.fields_by_name
    return _reader(fields_by_name[name])(message)


@cache
def _readers(
    kind: "type[DataclassInstance]", descriptor: Descriptor, own: frozenset[str]
) -> tuple[tuple[str, Callable[[Message], object]], ...]:
    names = [field.name for field in fields(kind) if field.name not in own]
    return tuple((name, _reader(descriptor.fields_by_name[name])) for name in names)


def _reader(field: FieldDescriptor) -> Callable[[Message], object]:
    name, read = field.name, attrgetter(field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        if field.message_type.fields_by_name["value"].message_type is None:
            return lambda message: dict(read(message))
        return lambda message: {key: from_value(value) for key, value in sorted(read(message).items())}
    if field.message_type is not None:
        convert = CONVERTERS[field.message_type]
        if field.is_repeated:
            return lambda message: tuple(map(convert, read(message)))
        return lambda message: convert(read(message)) if message.HasField(name) else None
    if field.is_repeated:
        return lambda message: tuple(read(message))
    if field.has_presence:
        return lambda message: read(message) if message.HasField(name) else None
    return read
