"""Bounds on lists of messages, before their items become objects."""

from __future__ import annotations

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from service._gen import agent_pb2, identity_pb2, matching_pb2, tuning_pb2
from service.core.errors import InvalidInput
from service.rpc.lists import _fields, check_lists

_PARAMETER = tuning_pb2.Parameter(name="x", boolean=tuning_pb2.Parameter.BoolRange())
_COMPONENT = agent_pb2.Component()
_RESULT = tuning_pb2.CompleteTrialsRequest.Result()
_VALUES = tuning_pb2.Values(values=[tuning_pb2.Value()] * 10_001)
_REPORT = matching_pb2.JobReport(considered=[matching_pb2.Considered()] * 33)


def test_every_list_of_messages_in_a_request_has_a_bound() -> None:
    requests = [
        method.input_type
        for module in (agent_pb2, identity_pb2, matching_pb2, tuning_pb2)
        for service in module.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    assert len(requests) > 40
    for kind in requests:
        # A list without one raises KeyError.
        check_lists(GetMessageClass(kind)())
    assert _fields(tuning_pb2.CompleteTrialRequest.DESCRIPTOR) == ()


@pytest.mark.parametrize(
    ("request_", "field", "most"),
    [
        (agent_pb2.RegisterRequest(components=[_COMPONENT] * 201), "components", 200),
        (
            agent_pb2.RegisterRequest(components=[_COMPONENT, agent_pb2.Component(space=[_PARAMETER] * 1001)]),
            "components[1].space",
            1000,
        ),
        (tuning_pb2.CreateStudyRequest(spec=tuning_pb2.StudySpec(space=[_PARAMETER] * 1001)), "spec.space", 1000),
        (
            tuning_pb2.EditSpaceRequest(add=[tuning_pb2.Parameter(categorical=_VALUES)]),
            "add[0].categorical.values",
            10_000,
        ),
        (tuning_pb2.CompleteTrialsRequest(results=[_RESULT] * 1001), "results", 1000),
        (matching_pb2.ReportJobsRequest(jobs=[matching_pb2.JobReport()] * 501), "jobs", 500),
        (
            matching_pb2.ReportJobsRequest(jobs=[_REPORT]),
            "jobs[0].considered",
            32,
        ),
    ],
)
def test_a_list_that_is_too_long_is_refused_with_its_place(request_: Message, field: str, most: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_lists(request_)
    assert (caught.value.data["field"], caught.value.data["allowed"]) == (field, f"at most {most}")


def test_lists_within_the_bounds_pass() -> None:
    check_lists(agent_pb2.RegisterRequest(components=[agent_pb2.Component(space=[_PARAMETER] * 1000)] * 2))
    check_lists(tuning_pb2.CompleteTrialsRequest(results=[_RESULT] * 1000))
