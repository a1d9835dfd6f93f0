"""Bounds on calls in progress: callers that send much, send nothing, or have no token."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from service._gen import agent_pb2, tuning_pb2
from service.rpc.admission import ANONYMOUS_CALLS, MAX_ANONYMOUS_BYTES
from tests.factories.grpc_service import TOKEN, GrpcService, create, refusal, refusal_of, started
from tests.factories.patience import PATIENCE

LIST, ENROL = "/trimtab.tuning.v1.TuningService/ListStudies", "/trimtab.agent.v1.AgentService/Enrol"
REGISTER = "/trimtab.agent.v1.AgentService/Register"
ACQUIRE = "/trimtab.agent.v1.AgentService/AcquireLeases"
SUGGEST, RENEW = "/trimtab.tuning.v1.TuningService/SuggestTrials", "/trimtab.tuning.v1.TuningService/RenewTrials"
WITH_TOKEN = (("authorization", f"Bearer {TOKEN}"),)


@pytest.fixture
def small_service(template: GrpcService, monkeypatch: pytest.MonkeyPatch) -> Iterator[GrpcService]:
    """A service with room for few calls of one caller."""
    monkeypatch.setenv("TRIMTAB_GRPC_CALLS", "2000")
    monkeypatch.setenv("TRIMTAB_GRPC_CALLS_PER_PRINCIPAL", "20")
    monkeypatch.setenv("TRIMTAB_GRPC_REQUEST_SECONDS", "10")
    service = started(template)
    yield service
    service.close()


@pytest.fixture
def hasty_service(template: GrpcService, monkeypatch: pytest.MonkeyPatch) -> Iterator[GrpcService]:
    """A service that gives a connection a second to begin."""
    monkeypatch.setenv("TRIMTAB_GRPC_HANDSHAKE_SECONDS", "1")
    service = started(template)
    yield service
    service.close()


def empty_components(count: int) -> bytes:
    """A Register request with so many components without content, two bytes each."""
    number = agent_pb2.RegisterRequest.DESCRIPTOR.fields_by_name["components"].number
    return bytes([number << 3 | 2, 0]) * count


def memory_of(service: GrpcService) -> int:
    """The largest resident memory of the process so far, in MiB."""
    assert service.process is not None
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) // 1024


async def refusals_without_body(address: str, method: str, count: int, metadata: Any = None) -> list[Any]:
    """Begin so many calls on one connection, never send their requests, and return the errors that come."""
    async with grpc.aio.insecure_channel(address) as channel:
        start: Any = channel.stream_unary(method)
        calls = [start(metadata=metadata, timeout=PATIENCE) for _ in range(count)]
        errors: list[Any] = []
        for call in calls:
            try:
                await call
            except grpc.aio.AioRpcError as error:
                errors.append(error)
        return errors


def test_a_large_request_without_a_token_is_not_read(own_grpc_service: GrpcService) -> None:
    before = memory_of(own_grpc_service)
    call: Any = own_grpc_service.channel(token=None).unary_unary(REGISTER)
    for size in (1_900_000, 7_900_000):
        error = refusal(call, empty_components(size))
        assert error.status in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert memory_of(own_grpc_service) - before < 60


def test_a_request_that_lists_messages_is_smaller(own_grpc_service: GrpcService) -> None:
    before = memory_of(own_grpc_service)
    call: Any = own_grpc_service.channel().unary_unary(REGISTER)
    error = refusal(call, empty_components(1_900_000))
    assert (error.code, error.data["allowed"]) == ("message_too_large", 1024 * 1024)
    assert memory_of(own_grpc_service) - before < 60


@pytest.mark.parametrize(
    ("method", "field", "raw"),
    [
        (REGISTER, "components", lambda: empty_components(450_000)),
        (
            SUGGEST,
            "held_trials",
            lambda: tuning_pb2.SuggestTrialsRequest(held_trials=[1] * 900_000).SerializeToString(),
        ),
        (RENEW, "trials", lambda: tuning_pb2.RenewTrialsRequest(trials=[1] * 4_000_000).SerializeToString()),
        (
            ACQUIRE,
            "held_leases",
            lambda: agent_pb2.AcquireLeasesRequest(held_leases=[""] * 2_000_000).SerializeToString(),
        ),
        (LIST, "states", lambda: tuning_pb2.ListStudiesRequest(states=[1] * 4_000_000).SerializeToString()),  # type: ignore[list-item]
    ],
    ids=["messages", "numbers", "more numbers", "texts", "states"],
)
def test_a_request_with_many_entries_takes_little_memory(
    own_grpc_service: GrpcService, method: str, field: str, raw: Callable[[], bytes]
) -> None:
    """Only the bytes themselves, which gRPC copies a few times, and no objects."""
    call: Any = own_grpc_service.channel().unary_unary(method)
    with suppress(grpc.RpcError):
        call(b"", timeout=PATIENCE)  # the first one imports and connects
    before, sent = memory_of(own_grpc_service), raw()
    error = refusal(call, sent)
    assert (error.code, error.data["field"], error.data["allowed"]) == (
        "invalid_argument",
        field,
        "at most 100,000 entries in all lists of a request",
    )
    assert memory_of(own_grpc_service) - before < 30


def test_a_method_without_a_token_takes_small_requests_only(grpc_service: GrpcService) -> None:
    stub = grpc_service.agents(token=None)
    error = refusal(stub.Enrol, agent_pb2.EnrolRequest(token="x" * MAX_ANONYMOUS_BYTES))
    assert (error.code, error.data["allowed"]) == ("message_too_large", MAX_ANONYMOUS_BYTES)


def test_calls_without_token_and_body_end_at_once(small_service: GrpcService) -> None:
    errors = asyncio.run(refusals_without_body(small_service.address, LIST, 400))
    assert {error.code() for error in errors} == {grpc.StatusCode.UNAUTHENTICATED}
    assert len(errors) == 400
    small_service.tuning().ListStudies(tuning_pb2.ListStudiesRequest(), timeout=PATIENCE)


def test_half_open_calls_of_one_caller_leave_others_alone(small_service: GrpcService) -> None:
    tuning = small_service.tuning()

    async def attack() -> list[Any]:
        attacking = asyncio.create_task(refusals_without_body(small_service.address, LIST, 150, WITH_TOKEN))
        anonymous = asyncio.create_task(refusals_without_body(small_service.address, ENROL, ANONYMOUS_CALLS))
        return [*await attacking, *await anonymous]

    errors = [refusal_of(error) for error in asyncio.run(attack())]
    codes = [error.code for error in errors]
    # each call ended, although no request ever came
    assert set(codes) == {"too_many_calls", "request_too_slow"}
    assert codes.count("too_many_calls") > 0
    assert all(error.status == grpc.StatusCode.RESOURCE_EXHAUSTED and error.retryable for error in errors)
    create(tuning)


def test_a_call_without_any_message(grpc_service: GrpcService) -> None:
    call: Any = grpc_service.channel(token=None).stream_unary(LIST)
    error = refusal(call, iter(()), metadata=WITH_TOKEN)
    assert (error.status, error.code) == (grpc.StatusCode.INVALID_ARGUMENT, "invalid_argument")


@pytest.mark.parametrize("begun", [b"", b"PRI * HTTP/2.0\r\n\r\nSM"])
def test_a_connection_that_does_not_begin_http_2_is_closed(hasty_service: GrpcService, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", hasty_service.port), PATIENCE) as connection:
        connection.sendall(begun)
        # Half of gRPC's default. The service was told to give it a second.
        connection.settimeout(60)
        try:
            while connection.recv(65536):
                pass
        except ConnectionResetError:
            pass


def test_a_connection_without_calls_stays_open(hasty_service: GrpcService) -> None:
    """An SDK or agent that has nothing to say is no attacker."""
    channel = hasty_service.channel()
    states: list[grpc.ChannelConnectivity] = []
    grpc.channel_ready_future(channel).result(PATIENCE)
    channel.subscribe(states.append)
    with socket.create_connection(("127.0.0.1", hasty_service.port), PATIENCE) as connection:
        connection.recv(65536)
        while connection.recv(65536):
            pass
    assert set(states) <= {grpc.ChannelConnectivity.READY, grpc.ChannelConnectivity.IDLE}
