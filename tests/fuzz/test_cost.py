"""Requests as large as they may be, and their cost: CPU seconds and memory of the processes that answer them.

Each request of a viewer begins as a good one, in which one field is swollen: a text as long as the limits allow, a list
or map with as many entries, the largest number. Times depend on the machine, so these tests are slow ones.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from service._gen import identity_pb2, identity_pb2_grpc, tuning_pb2, tuning_pb2_grpc
from service.rpc.admission import MAX_LISTED_BYTES
from tests.factories.grpc_service import WithToken, spec, unique
from tests.factories.patience import PATIENCE
from tests.fuzz.conftest import Prey
from tests.fuzz.test_grpc import METHODS, caller, good_requests, pools_of
from tests.unit.tenancy.test_isolation import BODIES

pytestmark = pytest.mark.slow("sends the largest requests to every method")

MOST_SECONDS, MOST_BYTES = 1.0, 50_000_000
# A little less than what a request may have.
SIZE = MAX_LISTED_BYTES - 20_000
FILLERS = ("x", "(", "9", "[", "a ", "-x", ".*", "x\n", "{a: ")
TRIALS = 5_000


@dataclass
class Meter:
    """The processes that answer requests."""

    prey: Prey

    def processes(self) -> list[psutil.Process]:
        found = self.prey.service.processes()
        database = psutil.Process(found["postgres"])
        return [psutil.Process(found["web"]), psutil.Process(found["grpc"]), *database.children()]

    def cost(self, call: Callable[[], object]) -> tuple[float, int]:
        """Return the CPU seconds and the bytes of memory that a call takes."""
        processes = self.processes()[:2]
        before, seconds = [one.memory_info().rss for one in processes], self._seconds()
        for one in processes:
            # Forget the highest memory so far.
            Path(f"/proc/{one.pid}/clear_refs").write_text("5")
        call()
        peaks = [_peak(one.pid) for one in processes]
        return self._seconds() - seconds, max(peak - rss for peak, rss in zip(peaks, before, strict=True))

    def _seconds(self) -> float:
        total = 0.0
        for process in self.processes():
            try:
                total += sum(process.cpu_times()[:2])
            except psutil.NoSuchProcess:
                continue
        return total


def _peak(pid: int) -> int:
    (line,) = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


@pytest.fixture(scope="module")
def studied(prey: Prey) -> str:
    """The name of a study with many trials."""
    prey.renew()
    tuning, name = tuning_pb2_grpc.TuningServiceStub(prey.channel), unique()
    tuning.CreateStudy(tuning_pb2.CreateStudyRequest(name=name, spec=spec()), timeout=PATIENCE)
    for begin in range(0, TRIALS, 1000):
        tuning.SuggestTrials(tuning_pb2.SuggestTrialsRequest(study=name, count=1000), timeout=PATIENCE)
        results = [
            tuning_pb2.CompleteTrialsRequest.Result(trial=begin + number, metrics={"loss": number % 97 / 7})
            for number in range(1, 1001)
        ]
        tuning.CompleteTrials(tuning_pb2.CompleteTrialsRequest(study=name, results=results), timeout=PATIENCE)
    return name


@pytest.fixture(scope="module")
def viewer(prey: Prey) -> str:
    """A token that may only read."""
    identity = identity_pb2_grpc.IdentityServiceStub(prey.channel)
    request = identity_pb2.CreateApiTokenRequest(name=unique("viewer"), scopes=["read"])
    return identity.CreateApiToken(request, timeout=PATIENCE).secret


# --- gRPC


def swollen(message: Message) -> Iterator[tuple[str, Message]]:
    """Make variants of a message with one swollen field each; the text says which."""
    for path, field in _places(message):
        for text, value in _large(field, message, path):
            whole = type(message)()
            whole.CopyFrom(message)
            place: Any = whole
            for step in path:
                place = place[step] if isinstance(step, int) else getattr(place, step)
            place.ClearField(field.name)
            try:
                place.MergeFrom(type(place)(**{field.name: value}))
            except (ValueError, TypeError):
                continue
            if whole.ByteSize() < MAX_LISTED_BYTES:
                yield f"{'.'.join(map(str, path))}.{field.name} {text}", whole


def _places(message: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], FieldDescriptor]]:
    for field in message.DESCRIPTOR.fields:
        yield path, field
        if field.message_type is None or field.message_type.GetOptions().map_entry or len(path) > 4:
            continue
        inner = getattr(message, field.name)
        if not field.is_repeated:
            yield from _places(inner, (*path, field.name))
        elif len(inner):
            yield from _places(inner[0], (*path, field.name, 0))


def _large(field: FieldDescriptor, message: Any, path: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        item = kind.fields_by_name["value"]
        made = _single(item)
        if made is not None:
            yield "many entries", {f"k{number}": made for number in range(SIZE // 24)}
        return
    if field.is_repeated:
        place: Any = message
        for step in path:
            place = place[step] if isinstance(step, int) else getattr(place, step)
        have = list(getattr(place, field.name))
        if kind is not None:
            example = have[0] if have else None
            if example is None:
                return
            count = min(100_000, SIZE // (example.ByteSize() + 12))
            copies = []
            for number in range(count):
                one = type(example)()
                one.CopyFrom(example)
                if "name" in one.DESCRIPTOR.fields_by_name:
                    one.name = f"p{number}"
                copies.append(one)
            yield "many", copies
            yield "a few hundred", copies[:300]
        else:
            example = have[0] if have else _single(field)
            yield "many", [example] * (SIZE // 12)
            if isinstance(example, str):
                yield "many different", [f"{number}" for number in range(SIZE // 10)]
        return
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        for filler in FILLERS:
            yield repr(filler), (filler * SIZE)[: SIZE // len(filler.encode()) * len(filler)]
        yield "0.5 KB", "(" * 490
    elif kind is None:
        value = _single(field)
        if value is not None:
            yield "large", value


def _single(field: FieldDescriptor) -> Any:
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_INT32:
            return 2**31 - 1
        case FieldDescriptor.CPPTYPE_INT64:
            return 2**63 - 1
        case FieldDescriptor.CPPTYPE_UINT32:
            return 2**32 - 1
        case FieldDescriptor.CPPTYPE_UINT64:
            return 2**64 - 1
        case FieldDescriptor.CPPTYPE_DOUBLE:
            return 1e308
        case FieldDescriptor.CPPTYPE_STRING:
            return "x"
        case FieldDescriptor.CPPTYPE_BOOL:
            return True
    return None


def _good(prey: Prey, method: MethodDescriptor, study: str) -> list[Any]:
    good: list[Any] = [
        item for item in good_requests(prey).get(method.name, []) if item.DESCRIPTOR is method.input_type
    ]
    if not good:
        kind: Any = GetMessageClass(method.input_type)
        known = {}
        for field in method.input_type.fields:
            pool = pools_of(prey).get(f"{method.input_type.name}.{field.name}") or pools_of(prey).get(field.name)
            if pool and not field.is_repeated and field.message_type is None:
                known[field.name] = pool[0]
        good = [kind(**known)]
    for one in good:
        if "study" in one.DESCRIPTOR.fields_by_name and one.study == prey.study:
            one.study = study
    return good


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.containing_service.name}.{method.name}")
def test_no_message_of_a_viewer_is_costly(prey: Prey, viewer: str, studied: str, method: MethodDescriptor) -> None:
    meter, costly = Meter(prey), []
    with grpc.insecure_channel(prey.service.grpc_address) as plain:
        call = caller(grpc.intercept_channel(plain, WithToken(viewer)), method)
        for good in _good(prey, method, studied):
            for text, request in [("as it is", good), *swollen(good)]:

                def send(request: Message = request) -> None:
                    try:
                        answer = call(request, timeout=0.5 if method.server_streaming else PATIENCE)
                        if method.server_streaming:
                            list(answer)
                    except grpc.RpcError:
                        pass

                seconds, size = meter.cost(send)
                if seconds > MOST_SECONDS or size > MOST_BYTES:
                    costly.append(f"{text}: {seconds:.2f} s, {size / 1e6:.0f} MB")
    assert costly == []


# --- REST


def inflated(value: Any) -> Iterator[tuple[str, Any]]:
    """Make variants of a JSON value with one swollen part each; the text says which."""
    match value:
        case dict():
            for key, inner in value.items():
                for text, other in inflated(inner):
                    yield f"{key}.{text}", {**value, key: other}
            example = next(iter(value.values()), 1)
            count = max(10, SIZE // (len(json.dumps(example)) + 12))
            yield "many keys", {**value, **{f"k{number}": copy.deepcopy(example) for number in range(count)}}
        case list():
            for text, other in inflated(value[0]) if value else ():
                yield f"0.{text}", [other, *value[1:]]
            example = value[0] if value else "x"
            count = max(10, SIZE // (len(json.dumps(example)) + 12))
            many = [
                {**copy.deepcopy(example), "name": f"p{number}"} if isinstance(example, dict) and "name" in example
                else copy.deepcopy(example)
                for number in range(count)
            ]  # fmt: skip
            yield "many", many
            yield "a few hundred", many[:300]
        case bool():
            yield "other", not value
        case int() | float():
            yield "large", 2**62
            yield "huge", 1e308
        case str():
            for filler in FILLERS:
                yield repr(filler), (filler * SIZE)[: SIZE // (2 * len(filler.encode()))]
            yield "0.5 KB", "(" * 490


def test_no_request_of_a_viewer_is_costly(prey: Prey, viewer: str, studied: str) -> None:
    meter, costly = Meter(prey), []
    headers = {"Authorization": f"Bearer {viewer}"}
    schema = httpx.get(f"{prey.service.http_url}/api/v1/schema?format=json", headers=headers, timeout=PATIENCE).json()
    there = {
        "name": studied, "number": "2", "operation_id": prey.operation, "artifact_id": "1", "agent_id": prey.agent,
        "token_id": "trm_x", "slug": prey.tenant, "record_id": prey.record, "channel_id": prey.notice_channel,
    }  # fmt: skip
    with httpx.Client(base_url=prey.service.http_url, headers=headers) as client:
        for path, operations in schema["paths"].items():
            for method, operation in operations.items():
                name = operation["operationId"]
                if path.endswith("/events") or "export" in name.lower():
                    continue
                body, url = BODIES.get(name), path.format_map(there)
                cases: list[tuple[str, str, Any]] = [("as it is", "", body)]
                cases += [(text, "", other) for text, other in (inflated(body) if body is not None else ())]
                for parameter in operation.get("parameters", []):
                    if parameter["in"] == "query":
                        key = parameter["name"]
                        values = ["x" * 8000, "9" * 300, "0", "1000", "2147483647", ",".join(["x"] * 3000)]
                        cases += [(f"?{key}={value[:9]}", f"?{key}={value}", body) for value in values]
                        cases.append((f"?{key} often", "?" + "&".join([f"{key}={studied}"] * 300), body))
                for text, query, content in cases:
                    data = None if content is None else json.dumps(content)

                    def send(method: str = method, url: str = url + query, data: str | None = data) -> None:
                        answer = client.request(
                            method, url, content=data, headers={"Content-Type": "application/json"}, timeout=PATIENCE
                        )
                        assert answer.status_code < 500, answer.text

                    seconds, size = meter.cost(send)
                    if seconds > MOST_SECONDS or size > MOST_BYTES:
                        costly.append(f"{name} {text}: {seconds:.2f} s, {size / 1e6:.0f} MB")
    assert costly == []
