"""A bound on the entries of lists and maps in a request, before the request is parsed.

An empty message takes two bytes on the way and more than a hundred in memory: 470,000 of them took 58 MB. The entries
are counted in the encoding of Protocol Buffers (https://protobuf.dev/programming-guides/encoding/).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from service.core.errors import InvalidInput

MOST_ENTRIES = 100_000
# The bytes of a packed list of numbers that end no number.
_CONTINUED = bytes(range(0x80, 0x100))
_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class _Field(NamedTuple):
    """A field with entries: its name, whether it is a list or map itself, whether that is a list of numbers, and the
    type of messages in which there are further entries.
    """

    name: str
    is_repeated: bool
    is_packed: bool
    inner: Descriptor | None


def check_entries(raw: bytes, kind: Descriptor) -> None:
    """Refuse a request of this type with more than MOST_ENTRIES entries in all.

    Raises InvalidInput, which names the list that has most of them, and DecodeError.
    """
    if len(raw) < MOST_ENTRIES:
        return  # an entry has at least one byte
    entries = 0
    entries_of: Counter[str] = Counter()
    parts = [(0, len(raw), kind, "")]
    while parts:
        at, end, kind, above = parts.pop()
        fields = _fields(kind)
        while at < end:
            # Most numbers have one byte. A call of _varint for each would take three times as long.
            tag, at = raw[at], at + 1
            if tag > 0x7F:
                tag, at = _varint(raw, at - 1, end)
            wire = tag & 7
            if wire == _DELIMITED:
                size, at = (raw[at], at + 1) if at < end and raw[at] < 0x80 else _varint(raw, at, end)
                field = fields.get(tag >> 3)
                if field is not None:
                    packed = len(raw[at : at + size].translate(None, _CONTINUED)) if field.is_packed else 0
                    name = above + field.name
                    entries += packed or field.is_repeated
                    entries_of[name] += packed or field.is_repeated
                    if size and field.inner is not None:
                        parts.append((at, at + size, field.inner, f"{name}."))
                at += size
            elif wire == _VARINT:
                _, at = _varint(raw, at, end)
                if tag >> 3 in fields:
                    entries += 1
                    entries_of[above + fields[tag >> 3].name] += 1
            elif wire in (_FIXED64, _FIXED32):
                at += 8 if wire == _FIXED64 else 4
            else:  # a group, which no .proto file of the service has
                raise DecodeError("groups are not supported")
            if entries > MOST_ENTRIES:
                (name, count), *_ = entries_of.most_common(1)
                allowed = f"at most {MOST_ENTRIES:,} entries in all lists of a request"
                raise InvalidInput(name, count, allowed, problem="entries are too many")
        if at > end:
            raise DecodeError("a field ends after its message")


def _varint(raw: bytes, at: int, end: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = shift = 0
    for place in range(at, min(end, at + _LONGEST_VARINT)):
        byte = raw[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
        shift += 7
    raise DecodeError("a number does not end")


@cache
def _fields(kind: Descriptor) -> Mapping[int, _Field]:
    """Return the fields of a type that have entries, at any depth, by number."""
    found = {}
    for field in kind.fields:
        inner = field.message_type if field.message_type is not None and _has_entries(field.message_type, ()) else None
        if field.is_repeated or inner is not None:
            found[field.number] = _Field(field.name, field.is_repeated, field.is_packed, inner)
    return found


def _has_entries(kind: Descriptor, above: tuple[str, ...]) -> bool:
    return kind.full_name not in above and any(
        field.is_repeated
        or (field.message_type is not None and _has_entries(field.message_type, (*above, kind.full_name)))
        for field in kind.fields
    )
