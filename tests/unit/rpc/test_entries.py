"""The bound on entries of lists and maps in a request that is not parsed yet."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from service._gen import agent_pb2, matching_pb2, tuning_pb2
from service.core.errors import InvalidInput
from service.rpc import entries
from service.rpc.entries import MOST_ENTRIES, check_entries

_MANY = MOST_ENTRIES + 1
_EMPTY = agent_pb2.Component()
_WIDE = agent_pb2.Component(space=[tuning_pb2.Parameter()] * 50_000)
_CHOICES = tuning_pb2.Parameter(categorical=tuning_pb2.Values(values=[tuning_pb2.Value()] * 50_001))


@pytest.mark.parametrize(
    ("request_", "field", "count"),
    [
        (agent_pb2.RegisterRequest(components=[_EMPTY] * _MANY), "components", _MANY),
        (agent_pb2.RegisterRequest(labels={f"{number}": "" for number in range(_MANY)}), "labels", _MANY),
        (agent_pb2.AcquireLeasesRequest(held_leases=[""] * _MANY), "held_leases", _MANY),
        (agent_pb2.RegisterRequest(components=[_WIDE] * 2), "components.space", MOST_ENTRIES - 1),
        (tuning_pb2.SuggestTrialsRequest(held_trials=range(_MANY)), "held_trials", _MANY),
        (tuning_pb2.RenewTrialsRequest(trials=[2**31 - 1] * _MANY), "trials", _MANY),
        (tuning_pb2.EditSpaceRequest(add=[_CHOICES] * 2), "add.categorical.values", MOST_ENTRIES - 1),
        (matching_pb2.MatchRequest(components=["x"] * _MANY), "components", _MANY),
    ],
)
def test_too_many_entries_are_refused_wherever_they_are(request_: Any, field: str, count: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_entries(request_.SerializeToString(), request_.DESCRIPTOR)
    assert str(caught.value) == (
        f"{field}: {count} entries are too many. Use at most 100,000 entries in all lists of a request."
    )
    assert caught.value.data["field"] == field


def test_entries_in_parts_of_one_message_are_counted_together() -> None:
    """A message that comes twice is merged by the parser."""
    half = tuning_pb2.CreateStudyRequest(
        spec=tuning_pb2.StudySpec(space=[tuning_pb2.Parameter()] * 50_001)
    ).SerializeToString()
    kind = tuning_pb2.CreateStudyRequest.DESCRIPTOR
    check_entries(half, kind)
    with pytest.raises(InvalidInput):
        check_entries(half * 2, kind)


def test_numbers_that_are_not_packed_are_counted() -> None:
    number = tuning_pb2.SuggestTrialsRequest.DESCRIPTOR.fields_by_name["held_trials"].number
    with pytest.raises(InvalidInput):
        check_entries(bytes([number << 3, 1]) * _MANY, tuning_pb2.SuggestTrialsRequest.DESCRIPTOR)


def test_the_most_entries_pass() -> None:
    request = agent_pb2.RegisterRequest(name="x" * MOST_ENTRIES, components=[_EMPTY] * MOST_ENTRIES)
    check_entries(request.SerializeToString(), request.DESCRIPTOR)


@pytest.mark.parametrize("end", [b"\x0a\x05ab", b"\x80" * 11, b"\x0b"])
def test_what_is_no_message_is_refused_whatever_follows(end: bytes) -> None:
    raw = end + agent_pb2.RegisterRequest(components=[_EMPTY] * _MANY).SerializeToString()
    with pytest.raises((InvalidInput, DecodeError)):
        check_entries(raw, agent_pb2.RegisterRequest.DESCRIPTOR)


_names = st.text(max_size=20)
_components = st.lists(
    st.builds(agent_pb2.Component, name=_names, space=st.lists(st.builds(tuning_pb2.Parameter, name=_names)))
)


@given(components=_components, labels=st.dictionaries(_names, _names), most=st.integers(0, 30))
def test_as_many_entries_as_the_parser_finds(components: list[Any], labels: dict[str, str], most: int) -> None:
    request = agent_pb2.RegisterRequest(name="n", slots=300, components=components, labels=labels)
    count = len(components) + len(labels) + sum(len(one.space) for one in components)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entries, "MOST_ENTRIES", most)
        refused = False
        try:
            check_entries(request.SerializeToString(), request.DESCRIPTOR)
        except InvalidInput:
            refused = True
    assert refused == (count > most)
