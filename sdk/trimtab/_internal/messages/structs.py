"""Conversion between JSON and protocol messages."""

from collections.abc import Mapping

from google.protobuf.struct_pb2 import Struct, Value

from trimtab.errors import JsonValue


def to_struct(content: Mapping[str, JsonValue]) -> Struct:
    """Return a JSON object as a message. Raises TypeError or ValueError for values that are not JSON."""
    struct = Struct()
    struct.update(content)
    return struct


def from_struct(struct: Struct) -> dict[str, JsonValue]:
    """Return the JSON object of a message. A Struct stores only doubles; whole numbers become ints again."""
    return {name: _from_value(value) for name, value in struct.fields.items()}


def _from_value(value: Value) -> JsonValue:
    match value.WhichOneof("kind"):
        case "number_value":
            return int(value.number_value) if value.number_value.is_integer() else value.number_value
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return from_struct(value.struct_value)
        case "list_value":
            return [_from_value(item) for item in value.list_value.values]
        case _:
            return None
