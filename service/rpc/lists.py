"""Bounds on the lists of messages in a request, before a plain object is made of each item.

An empty message takes two bytes, so a request within the bound on its bytes can have half a million of them.
docs/reference/limits.md lists the bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from service.core.errors import InvalidInput
from service.core.parameters import MOST_VALUES
from service.core.space import MOST_PARAMETERS
from service.fleet.agents import MOST_COMPONENTS
from service.fleet.live_instances import MOST_INSTANCES
from service.matching.jobs import MOST_CONSIDERED, MOST_JOBS
from service.trials.tell import MOST_READINGS, MOST_RESULTS

_FEW, _SOME = 100, 1000
# The most items of a list, by the type of the items.
MOST_ITEMS: Mapping[str, int] = {
    "trimtab.agent.v1.AnswerDryRunRequest.Rendered": _FEW,
    "trimtab.agent.v1.Component": MOST_COMPONENTS,
    "trimtab.agent.v1.Injected": _SOME,
    "trimtab.agent.v1.Installable": MOST_COMPONENTS,
    "trimtab.agent.v1.Invocation.Command": _SOME,
    "trimtab.agent.v1.LiveGuard": _FEW,
    "trimtab.matching.v1.Considered": MOST_CONSIDERED,
    "trimtab.matching.v1.JobReport": MOST_JOBS,
    "trimtab.tuning.v1.CompleteTrialsRequest.Result": MOST_RESULTS,
    "trimtab.tuning.v1.ContextVariable": _FEW,
    "trimtab.tuning.v1.LiveEntry": _SOME,
    "trimtab.tuning.v1.LiveInstance": MOST_INSTANCES,
    "trimtab.tuning.v1.LiveLook": _SOME,
    "trimtab.tuning.v1.LivePair": _SOME,
    "trimtab.tuning.v1.LiveReading": _FEW,
    "trimtab.tuning.v1.Measurement": MOST_READINGS,
    "trimtab.tuning.v1.Objective": _FEW,
    "trimtab.tuning.v1.Parameter": MOST_PARAMETERS,
    "trimtab.tuning.v1.Policy": _FEW,
    "trimtab.tuning.v1.Value": MOST_VALUES,
}


class _Field(NamedTuple):
    """A field in which there may be a list of messages: its name, and the bound if it is a list itself."""

    name: str
    most: int | None
    # Whether the message of the field, or of each item, has further lists.
    goes_on: bool


def check_lists(message: Message, where: str = "") -> None:
    """Refuse a list with too many items, at any depth. Raises InvalidInput with the path of the list."""
    for field in _fields(message.DESCRIPTOR):
        value: Any = getattr(message, field.name)
        place = f"{where}{field.name}"
        if field.most is None:
            if message.HasField(field.name):
                check_lists(value, f"{place}.")
            continue
        if len(value) > field.most:
            raise InvalidInput(place, f"{len(value)} {field.name}", f"at most {field.most}")
        if field.goes_on:
            for index, item in enumerate(value):
                check_lists(item, f"{place}[{index}].")


@cache
def _fields(message: Descriptor) -> tuple[_Field, ...]:
    """Return the fields of a type in which there may be a list of messages; none for most requests."""
    found = []
    for field in message.fields:
        kind = field.message_type
        # The types of Protocol Buffers themselves hold plain JSON, whose conversion is cheap.
        if kind is None or kind.GetOptions().map_entry or kind.full_name.startswith("google."):
            continue
        goes_on = bool(_fields(kind))
        if field.is_repeated:
            found.append(_Field(field.name, MOST_ITEMS[kind.full_name], goes_on))
        elif goes_on:
            found.append(_Field(field.name, None, goes_on))
    return tuple(found)
