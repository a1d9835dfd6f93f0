"""The boundary of all methods: tokens, sizes, invalid messages, health and reflection."""

import math
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from service._gen import agent_pb2, tuning_pb2
from service._gen.tuning_pb2_grpc import TuningServiceStub
from tests.factories.grpc_service import TOKEN, GrpcService, WithToken, ask, create, refusal, spec, unique, value
from tests.factories.patience import PATIENCE


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic abc", f"bearer {TOKEN}x", TOKEN]
)
def test_calls_without_a_valid_token_are_refused(grpc_service: GrpcService, header: str | None) -> None:
    name = unique()
    metadata = None if header is None else (("authorization", header),)
    tuning, agents = grpc_service.tuning(token=None), grpc_service.agents(token=None)
    for call, request in (
        (tuning.CreateStudy, tuning_pb2.CreateStudyRequest(name=name, spec=spec())),
        (tuning.WatchStudy, tuning_pb2.WatchStudyRequest(study=name)),
        (agents.Register, agent_pb2.RegisterRequest(agent_id=name, name=name, slots=1)),
    ):
        error = refusal(call, request, metadata=metadata)
        assert error.status == grpc.StatusCode.UNAUTHENTICATED
        assert error.code in ("missing_token", "invalid_token")
        assert TOKEN not in error.message
    error = refusal(grpc_service.tuning().GetStudy, tuning_pb2.GetStudyRequest(name=name))
    assert error.code == "study_not_found"


def test_a_request_that_is_too_large(grpc_service: GrpcService, tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study)

    def fail(size: int) -> tuning_pb2.FailTrialRequest:
        return tuning_pb2.FailTrialRequest(study=study, trial=1, reason="x" * size)

    error = refusal(tuning.FailTrial, fail(4 * 1024 * 1024))
    assert (error.status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "message_too_large")
    assert error.data["allowed"] == 4 * 1024 * 1024
    assert error.data["size"] > error.data["allowed"]
    # beyond gRPC's own limit the message is not even read
    with pytest.raises(grpc.RpcError) as caught:
        tuning.FailTrial(fail(17 * 1024 * 1024), timeout=PATIENCE)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in str(caught.value.details())
    trial = tuning.GetTrial(tuning_pb2.GetTrialRequest(study=study, trial=1))
    assert trial.state == tuning_pb2.TRIAL_STATE_ACTIVE


def test_lists_are_counted_before_their_items_are_looked_at(
    grpc_service: GrpcService, tuning: TuningServiceStub
) -> None:
    agents = grpc_service.agents()
    many = agent_pb2.RegisterRequest(agent_id="a", name="a", slots=1, components=[agent_pb2.Component()] * 99_000)
    space = spec(space=[tuning_pb2.Parameter(boolean=tuning_pb2.Parameter.BoolRange())] * 99_000)
    for call, request, field, allowed in (
        (agents.Register, many, "components", "at most 200"),
        (tuning.CreateStudy, tuning_pb2.CreateStudyRequest(name=unique(), spec=space), "spec.space", "at most 1000"),
    ):
        error = refusal(call, request)
        assert error.status == grpc.StatusCode.INVALID_ARGUMENT
        assert (error.data["field"], error.data["allowed"]) == (field, allowed)


@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_an_agent_s_number_that_json_does_not_have_is_refused(grpc_service: GrpcService, number: float) -> None:
    parameter = tuning_pb2.Parameter(name="x", float=tuning_pb2.Parameter.FloatRange(min=0, max=number))
    component = agent_pb2.Component(name="c", digest="d", space=[parameter])
    request = agent_pb2.RegisterRequest(agent_id="a", name="a", slots=1, components=[component])
    error = refusal(grpc_service.agents().Register, request)
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "components[0].space[0].max")


def test_invalid_messages_are_refused(grpc_service: GrpcService) -> None:
    call: Any = grpc_service.channel().unary_unary("/trimtab.tuning.v1.TuningService/GetStudy")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"\xff\xff\xff", timeout=PATIENCE)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "Traceback" not in str(caught.value.details())


def test_a_method_that_does_not_exist(grpc_service: GrpcService) -> None:
    call: Any = grpc_service.channel().unary_unary("/trimtab.tuning.v1.TuningService/Guess")
    with pytest.raises(grpc.RpcError) as caught:
        call(b"", timeout=PATIENCE)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_text_that_the_database_cannot_hold(tuning: TuningServiceStub) -> None:
    study = create(tuning)
    ask(tuning, study)
    for call, request in (
        (tuning.FailTrial, tuning_pb2.FailTrialRequest(study=study, trial=1, reason="a\0b")),
        (tuning.SuggestTrials, tuning_pb2.SuggestTrialsRequest(study=study, count=1, client_id="a\0b")),
        (tuning.SuggestTrials, tuning_pb2.SuggestTrialsRequest(study=study, count=1, client_id="x" * 5000)),
        (tuning.SuggestTrials, tuning_pb2.SuggestTrialsRequest(study=study, count=1, request_id="x" * 5000)),
        (tuning.ListStudies, tuning_pb2.ListStudiesRequest(name_prefix="a\0b")),
    ):
        error = refusal(call, request)
        assert error.status == grpc.StatusCode.INVALID_ARGUMENT
    assert tuning.GetTrial(tuning_pb2.GetTrialRequest(study=study, trial=1)).state == tuning_pb2.TRIAL_STATE_ACTIVE
    assert tuning.GetStudy(tuning_pb2.GetStudyRequest(name=study)).trial_count == 1


@pytest.mark.parametrize("character", ["x", "ß", "漢", "💡"])
def test_an_error_about_a_long_value_still_arrives(tuning: TuningServiceStub, character: str) -> None:
    """Errors travel in headers, which are small; a character may need nine bytes there."""
    params = {"x": value(character * 50_000), "n": value(1)}
    request = tuning_pb2.AddTrialRequest(study=create(tuning), params=params, metrics={"loss": 1.0})
    error = refusal(tuning.AddTrial, request)
    assert (error.status, error.data["field"]) == (grpc.StatusCode.INVALID_ARGUMENT, "params.x")
    request = tuning_pb2.AddTrialRequest(
        study=create(tuning), params={character * 50_000: value(1)}, metrics={"loss": 1.0}
    )
    assert refusal(tuning.AddTrial, request).status == grpc.StatusCode.INVALID_ARGUMENT


def test_health_needs_no_token(grpc_service: GrpcService) -> None:
    stub = health_pb2_grpc.HealthStub(grpc_service.channel(token=None))
    for service in ("", "trimtab.tuning.v1.TuningService", "trimtab.agent.v1.AgentService"):
        answer = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=PATIENCE)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_reflection_describes_the_services_to_those_with_a_token(grpc_service: GrpcService) -> None:
    stub = reflection_pb2_grpc.ServerReflectionStub(grpc_service.channel(token=None))
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        reflection_pb2.ServerReflectionRequest(file_containing_symbol="trimtab.agent.v1.AgentService"),
    ]
    assert refusal(stub.ServerReflectionInfo, iter(requests)).code == "missing_token"
    metadata = (("authorization", f"Bearer {TOKEN}"),)
    listed, described = stub.ServerReflectionInfo(iter(requests), timeout=PATIENCE, metadata=metadata)
    names = {service.name for service in listed.list_services_response.service}
    assert {"trimtab.tuning.v1.TuningService", "trimtab.agent.v1.AgentService", "grpc.health.v1.Health"} <= names
    assert described.file_descriptor_response.file_descriptor_proto


def test_a_token_is_not_needed_twice_on_one_connection(grpc_service: GrpcService) -> None:
    """One connection may carry calls of several callers: each is judged by itself."""
    channel = grpc_service.channel(token=None)
    good = TuningServiceStub(grpc.intercept_channel(channel, WithToken(TOKEN)))
    bad = TuningServiceStub(grpc.intercept_channel(channel, WithToken("wrong")))
    request = tuning_pb2.ListStudiesRequest(page_size=1)
    good.ListStudies(request)
    assert refusal(bad.ListStudies, request).code == "invalid_token"
    good.ListStudies(request)
